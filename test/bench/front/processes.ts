// The processes of a benchmark: started on one core, known by their id, and gone when it ends.
import { type ChildProcess, spawn } from 'node:child_process';
import net from 'node:net';

const started: ChildProcess[] = [];

export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** `taskset` becomes the program it starts, so the id is the program's. */
export function startOn(
  core: string,
  [command, ...given]: string[],
  options: { cwd?: string; ipc?: boolean; env?: Readonly<Record<string, string>> } = {},
) {
  const child = spawn('taskset', ['-c', core, command as string, ...given], {
    cwd: options.cwd,
    env: { ...process.env, NODE_ENV: 'production', ...options.env },
    stdio: [
      'ignore',
      'ignore',
      process.env.BENCH_LOUD ? 'inherit' : 'ignore',
      ...(options.ipc ? (['ipc'] as const) : []),
    ],
  });
  started.push(child);
  return child as ChildProcess & { pid: number };
}

export async function listens(port: number, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${child.spawnargs.join(' ')} ended with ${child.exitCode}`);
    const open = await new Promise<boolean>((resolve) => {
      const socket = net.connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('close', () => socket.destroy());
      socket.once('connect', () => socket.destroy());
    });
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

export async function stopAll(): Promise<void> {
  await Promise.all(
    started.splice(0).map(
      (child) =>
        new Promise<void>((resolve) => {
          if (child.exitCode !== null || child.signalCode !== null) return resolve();
          child.once('exit', () => resolve());
          child.kill('SIGTERM');
          setTimeout(() => child.kill('SIGKILL'), 3_000).unref();
        }),
    ),
  );
}
