import { fork, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testModels, writeRepository } from '../../contract/engine/test-models.ts';

const entry = path.resolve(import.meta.dirname, '../../../infra/pool/engine/main.ts');
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-engine-'));
  await writeRepository(folder, { slow: testModels.slow!, broken: { config: 'max_bach_size: 1' } });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function start() {
  const child = fork(entry, ['--repository', folder, '--port', '0', '--metrics-port', '0'], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
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

async function untilBusy(metricsPort: number, pending: number) {
  for (;;) {
    const page = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    if (page.includes(`nv_inference_pending_request_count{model="slow",version="1"} ${pending}`)) return;
  }
}

describe('the engine process', () => {
  it('says where it listens, serves what loads, and is not ready while a wanted model is broken', async () => {
    const { child, ended, ready } = await start();
    expect(ready.ready).toBe(true);
    expect((await ask(ready.port, 1)).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${ready.port}/v2/health/ready`)).status).toBe(400);
    await fetch(`http://127.0.0.1:${ready.port}/v2/repository/models/broken/unload`, { method: 'POST' });
    expect((await fetch(`http://127.0.0.1:${ready.port}/v2/health/ready`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  it('on SIGTERM answers what it has, running and queued, and ends with 0', async () => {
    const { child, ended, ready, said } = await start();
    const answers = [ask(ready.port, 150_000)];
    await untilBusy(ready.metricsPort, 0);
    answers.push(ask(ready.port, 1));
    await untilBusy(ready.metricsPort, 1);
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
      'no such file',
    ],
  ])('says in one line what is wrong with %s', (_, flags, expected) => {
    const run = spawnSync(process.execPath, [entry, '--repository', folder, ...flags], { encoding: 'utf8' });
    expect(run.status).toBe(2);
    expect(run.stderr).toMatch(/^engine: .*\n$/);
    expect(run.stderr).toContain(expected);
  });

  it('logs names and reasons, one JSON line each, and nothing of the tensors', async () => {
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
