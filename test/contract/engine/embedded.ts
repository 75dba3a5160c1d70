import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Implementation, Running } from './implementation.ts';
import { testModels, writeRepository } from './test-models.ts';

const entry = path.resolve(import.meta.dirname, '../../../infra/pool/engine/main.ts');

/** Starts the embedded engine as the local stack does: a child process that reports its address. */
export async function startEmbedded(
  repository: string,
  models: readonly string[] = [],
  mode: 'none' | 'explicit' = 'none',
): Promise<{ url: string; metricsUrl: string; stop(): Promise<number | null> }> {
  const child = fork(
    entry,
    [
      ...['--repository', repository, '--port', '0', '--metrics-port', '0', '--model-control-mode', mode],
      ...models.flatMap((name) => ['--model', name]),
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [],
    },
  );
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (said += text));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const ports = await new Promise<{ port: number; metricsPort: number }>((resolve, reject) => {
    child.once('message', (message) => resolve(message as { port: number; metricsPort: number }));
    void ended.then((code) => reject(new Error(`the engine ended with ${code}: ${said}`)));
  });
  return {
    url: `http://127.0.0.1:${ports.port}`,
    metricsUrl: `http://127.0.0.1:${ports.metricsPort}/metrics`,
    async stop() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

export const embedded: Implementation = {
  startMs: 60_000,
  name: 'embedded',
  differences: {},
  async start(): Promise<Running> {
    const folder = await mkdtemp(path.join(tmpdir(), 'auricle-engine-'));
    await writeRepository(folder, testModels);
    const engine = await startEmbedded(folder, Object.keys(testModels), 'explicit');
    return {
      ...engine,
      put: (models) => writeRepository(folder, models),
      async stop() {
        await engine.stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
};
