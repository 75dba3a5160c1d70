import { fork, spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { untilPending } from '../../contract/engine/client.ts';
import { testModels, writeRepository } from '../../contract/engine/test-models.ts';

const entry = path.resolve(import.meta.dirname, '../../../infra/pool/engine/main.ts');
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-engine-'));
  await writeRepository(folder, { slow: testModels.slow!, broken: { config: 'max_bach_size: 1' } });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function start(flags: readonly string[] = [], env: NodeJS.ProcessEnv = process.env) {
  const child = fork(entry, ['--repository', folder, '--port', '0', '--metrics-port', '0', ...flags], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
    env,
  });
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => said.push(String(text)));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const ready = await new Promise<{ ready: boolean; port: number; metricsPort: number }>((resolve) =>
    child.once('message', (message) => resolve(message as never)),
  );
  return { child, ended, ready, said };
}

const ask = (port: number, turns: number) =>
  fetch(`http://127.0.0.1:${port}/v2/models/slow/infer`, {
    method: 'POST',
    body: JSON.stringify({ inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 1], data: [turns] }] }),
  });

describe('the engine process', () => {
  it('reports its address, serves, and stays unready while a model fails', async () => {
    const { child, ended, ready } = await start();
    expect(ready.ready).toBe(true);
    expect((await ask(ready.port, 1)).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${ready.port}/v2/health/ready`)).status).toBe(400);
    await fetch(`http://127.0.0.1:${ready.port}/v2/repository/models/broken/unload`, { method: 'POST' });
    expect((await fetch(`http://127.0.0.1:${ready.port}/v2/health/ready`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  it('sends no telemetry to the vendor of its runtime', async () => {
    const home = await mkdtemp(path.join(tmpdir(), 'auricle-home-'));
    // The runtime reports when none of these is set; it stores an id of the machine first.
    const { CI: _, ORT_DISABLE_TELEMETRY: __, ORT_RUNNING_UNIT_TESTS: ___, ...others } = process.env;
    const { child, ended, ready } = await start([], { ...others, HOME: home, XDG_CACHE_HOME: home });
    expect((await ask(ready.port, 1)).status).toBe(200);
    child.kill('SIGTERM');
    await ended;
    expect(await readdir(home, { recursive: true })).toEqual([]);
    await rm(home, { recursive: true });
  });

  it('A11: starts empty in explicit mode and stays ready after a failed load', async () => {
    const { child, ended, ready } = await start(['--model-control-mode', 'explicit']);
    const url = `http://127.0.0.1:${ready.port}`;
    const status = async (path: string, method = 'GET') => (await fetch(`${url}/v2/${path}`, { method })).status;
    const index = async () => (await fetch(`${url}/v2/repository/index`, { method: 'POST' })).json();
    expect([await status('health/ready'), await status('models/slow/ready')]).toEqual([200, 400]);
    expect(await index()).toEqual([{ name: 'broken' }, { name: 'slow' }]);
    expect(await status('repository/models/broken/load', 'POST')).toBe(400);
    expect(await status('health/ready')).toBe(200);
    expect(await status('repository/models/slow/load', 'POST')).toBe(200);
    expect((await ask(ready.port, 1)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  it('finishes running and queued requests on SIGTERM and exits with 0', { timeout: 30_000 }, async () => {
    const { child, ended, ready, said } = await start();
    const host = 'http://127.0.0.1';
    const engine = { url: `${host}:${ready.port}`, metricsUrl: `${host}:${ready.metricsPort}/metrics` };
    // Two equally long requests: one runs while the other waits, in either order.
    const answers = [ask(ready.port, 60_000), ask(ready.port, 60_000)];
    await untilPending(engine, 'slow', 1);
    child.kill('SIGTERM');
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
    expect(await ended, said.join('')).toBe(0);
  });

  it('ends when its parent is gone', async () => {
    const { child, ended } = await start();
    child.disconnect();
    expect(await ended).toBe(0);
  });

  it.each([
    ['a setting', ['--port', 'eighty'], "port must be a whole number from 0 to 65535, got 'eighty'"],
    [
      'the repository',
      ['--port', '0', '--metrics-port', '0', '--repository', path.join(tmpdir(), 'no such folder')],
      `there is no folder ${path.join(tmpdir(), 'no such folder')}: --repository or AURICLE_ENGINE_REPOSITORY must`,
    ],
    ['the mode', ['--model-control-mode', 'poll'], "model control mode must be none or explicit, got 'poll'"],
    ['a flag', ['--prot', '1'], "Unknown option '--prot'; --help lists the flags"],
    ['a value', ['--port', '-1'], '--port wants a value that does not begin with a dash; --help'],
  ])('reports an error of %s in one line', (_, flags, expected) => {
    const run = spawnSync(process.execPath, [entry, '--repository', folder, ...flags], { encoding: 'utf8' });
    expect(run.status).toBe(2);
    expect(run.stderr).toMatch(/^engine: .*\n$/);
    expect(run.stderr).toContain(expected);
  });

  it('prints its options', () => {
    const run = spawnSync(process.execPath, [entry, '--help'], { encoding: 'utf8' });
    expect([run.status, run.stderr]).toEqual([0, '']);
    for (const flag of ['repository', 'model', 'model-control-mode', 'host', 'port', 'metrics-port', 'threads'])
      expect(run.stdout).toContain(`\n  --${flag} `);
  });

  it('logs names and reasons as JSON lines, without tensors', async () => {
    const { child, ended, ready, said } = await start();
    await ask(ready.port, 4_711);
    child.kill('SIGTERM');
    await ended;
    const lines = said.join('').trim().split('\n');
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ part: 'engine' });
    expect(lines.join()).toContain('max_bach_size');
    expect(lines.join()).not.toContain('4711');
  });
});
