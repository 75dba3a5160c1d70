// Every way to end a stack leaves no process and no port. Run on parts that need no model, for speed; the
// edge is among them, because its runtime is the one process that is no child of the supervisor.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { choosePorts, isFree } from '../../../infra/local/ports.ts';
import { ROOT } from '../../../infra/local/root.ts';
import { folderForTest } from './folder.ts';
import { isRunning } from './process.ts';

/** Starting takes a second on an idle machine, and many on a busy one. */
const PATIENCE = { timeout: 60_000, interval: 50 };

const START = 'infra/local/start.cjs';
const PARTS = ['sqs', 'edge'];

type Run = { launcher: ChildProcess; supervisor: number; parts: number[]; port: number; state: string };

/** `npm start` without npm: the launcher, below it the supervisor, below that the parts. */
async function startByLauncher(): Promise<Run> {
  const state = folderForTest();
  const [port = 0] = await choosePorts(1);
  const launcher = spawn('node', [START, '--state', state, '--port', String(port), '--parts', PARTS.join()], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, as a shell gives a command: Ctrl-C reaches all of it.
    detached: true,
  });
  onTestFinished(() => {
    launcher.kill('SIGKILL');
  });
  let said = '';
  for (const stream of [launcher.stdout, launcher.stderr])
    stream?.on('data', (chunk) => {
      said += chunk;
    });
  await expect.poll(() => said, PATIENCE).toContain('Ctrl-C stops it');
  const { pid, groups } = JSON.parse(readFileSync(path.join(state, 'stack.json'), 'utf8'));
  expect(groups).toHaveLength(PARTS.length);
  return { launcher, supervisor: pid, parts: groups, port, state };
}

async function expectNothingLeft(run: Run): Promise<void> {
  const left = () => [run.supervisor, ...run.parts].filter(isRunning);
  await expect.poll(left, PATIENCE).toEqual([]);
  await expect.poll(() => isFree(run.port), PATIENCE).toBe(true);
}

describe.skipIf(process.platform === 'win32')('the stack leaves nothing behind', { timeout: 150_000 }, () => {
  it('after Ctrl-C, and ends well', async () => {
    const run = await startByLauncher();
    const ended = once(run.launcher, 'exit');
    process.kill(-(run.launcher.pid as number), 'SIGINT');
    expect(await ended).toEqual([0, null]);
    // An ordered stop: all processes end before the launcher.
    expect([run.supervisor, ...run.parts].filter(isRunning)).toEqual([]);
    await expectNothingLeft(run);
  });

  it('after SIGKILL of the launcher', async () => {
    const run = await startByLauncher();
    run.launcher.kill('SIGKILL');
    await expectNothingLeft(run);
  });

  it('after SIGKILL of the supervisor, and refuses a second start until then', async () => {
    const run = await startByLauncher();
    const again = ['--state', run.state, '--port', '0', '--parts', 'sqs'];
    const second = await runToEnd(again);
    expect(second.code).toBe(1);
    const where = `http://127.0.0.1:${run.port} (process ${run.supervisor})`;
    expect(second.said).toBe(`a stack already runs on ${run.state}: ${where}\n`);
    process.kill(run.supervisor, 'SIGKILL');
    await expectNothingLeft(run);
    const third = spawn('node', [START, ...again], { cwd: ROOT });
    onTestFinished(() => {
      third.kill('SIGKILL');
    });
    const ended = once(third, 'exit');
    let said = '';
    for (const stream of [third.stdout, third.stderr])
      stream.on('data', (chunk) => {
        said += chunk;
      });
    await expect.poll(() => said, PATIENCE).toContain('Ctrl-C stops it');
    third.kill('SIGTERM');
    expect((await ended)[0]).toBe(0);
  });

  it('after SIGKILL of supervisor and edge at once: no process is left', async () => {
    const run = await startByLauncher();
    const edge = run.parts.find((pid) => commandOf(pid).includes('part/edge.js')) as number;
    process.kill(run.supervisor, 'SIGKILL');
    process.kill(edge, 'SIGKILL');
    await expectNothingLeft(run);
  });

  it('restarts a killed edge on its port; ends well after SIGTERM by two ways', async () => {
    const run = await startByLauncher();
    const edge = run.parts.find((pid) => commandOf(pid).includes('part/edge.js')) as number;
    process.kill(edge, 'SIGKILL');
    const answers = () => fetch(`http://127.0.0.1:${run.port}/healthz`).then((response) => response.status);
    await expect.poll(() => isRunning(edge), PATIENCE).toBe(false);
    await expect.poll(() => answers().catch(() => 0), PATIENCE).toBe(200);
    const ended = once(run.launcher, 'exit');
    process.kill(run.supervisor, 'SIGTERM');
    run.launcher.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(existsSync(path.join(run.state, 'stack.json'))).toBe(false);
    await expectNothingLeft(run);
  });

  it('a port in use is reported in one line', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { code, said } = await runToEnd(['--state', folderForTest(), '--port', String(port)]);
    expect(code).toBe(1);
    expect(said).toBe(`port ${port} is in use by another program: choose one with --port N\n`);
  });
});

const commandOf = (pid: number) => execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });

async function runToEnd(given: string[]): Promise<{ code: number; said: string }> {
  const child = spawn('node', [START, ...given], { cwd: ROOT });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const [code] = await once(child, 'close');
  return { code, said };
}
