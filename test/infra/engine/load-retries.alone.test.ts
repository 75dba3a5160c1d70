import { mkdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Repository } from '../../../infra/pool/engine/repository/repository.ts';
import { Slot } from '../../../infra/pool/engine/repository/slot.ts';
import { backOffMs } from '../../../shared/back-off.ts';
import { MODEL_RELOAD_MAX_MS, MODEL_RELOAD_MS } from '../../../shared/kserve/limits.ts';
import { testModels, writeRepository } from '../../contract/engine/test-models.ts';
import { FakeEngineClock } from '../../fake/engine-instance.ts';
import { temporaryFolder } from '../local/folder.ts';

const LONGEST_US = MODEL_RELOAD_MAX_MS * 1_000;
const scratch = temporaryFolder();
const lines: { event: string; [field: string]: unknown }[] = [];
let folder: string;
let clock: FakeEngineClock;
let repository: Repository;

beforeEach(async () => {
  folder = path.join(scratch.path, `${Math.random()}`);
  await writeRepository(folder, { good: testModels.identity_fp32!, add: testModels.add!, twice: testModels.twice! });
  clock = new FakeEngineClock();
  lines.length = 0;
  vi.spyOn(process.stdout, 'write').mockImplementation((line) => {
    lines.push(JSON.parse(String(line)));
    return true;
  });
});
afterEach(async () => {
  await repository.close();
  vi.restoreAllMocks();
  scratch.remove();
});

async function start(models?: readonly string[]): Promise<void> {
  const settings = { repository: folder, host: '', port: 0, metricsPort: 0, intraThreads: 1, models, explicit: false };
  repository = new Repository(settings, clock);
  await repository.start();
}

/** Lets scheduled attempts run. An unload of an unknown model ends after them: loads run in turn. */
async function retry(): Promise<void> {
  clock.advance(clock.now() + LONGEST_US);
  await repository.unload('nobody', false);
}

const linesOf = (event: string, model: string) => lines.filter((line) => line.event === event && line.model === model);
const stateOf = async (model: string) => (await repository.index(false)).find(({ name }) => name === model);

describe('A model that failed to load', () => {
  it('A1 A18 loads with its ensemble once its file is complete', async () => {
    const file = path.join(folder, 'add/1/model.onnx');
    await rename(file, path.join(folder, 'whole.onnx'));
    await writeFile(file, 'half a net');
    await start(['good', 'twice']);
    expect(repository.ready).toBe(false);
    expect(repository.find('good', undefined).ok).toBe(true);
    expect((await stateOf('add'))?.state).toBe('UNAVAILABLE');
    await retry();
    expect(repository.ready).toBe(false);
    expect(linesOf('load failed', 'add')).toHaveLength(2);
    expect(linesOf('load failed', 'add')[0]?.reason).toMatch(/^version 1: ./);
    expect(linesOf('load retry scheduled', 'add').map(({ failures }) => failures)).toEqual([1, 2]);

    await rename(path.join(folder, 'whole.onnx'), file);
    await retry();
    expect(repository.ready).toBe(true);
    expect(repository.find('twice', undefined).ok).toBe(true);
    expect(linesOf('model recovered', 'add')).toMatchObject([{ failures: 2 }]);
    expect(clock.armed).toBe(0);
  });

  it('A1 is tried with pauses that double up to a bound', async () => {
    await truncate(path.join(folder, 'good/1/model.onnx'), 0);
    await start(['good']);
    for (let turn = 0; turn < 9; turn++) await retry();
    const pauses = linesOf('load retry scheduled', 'good').map(({ pauseMs }) => Number(pauseMs));
    const bounds = { firstMs: MODEL_RELOAD_MS, maxMs: MODEL_RELOAD_MAX_MS };
    expect(pauses).toHaveLength(10);
    for (const [attempt, pause] of pauses.entries()) {
      expect(pause).toBeGreaterThanOrEqual(Math.floor(backOffMs(attempt, bounds, 0)));
      expect(pause).toBeLessThanOrEqual(Math.ceil(backOffMs(attempt, bounds, 1)));
    }
  });

  it('A1 loads when its folder appears after the start', async () => {
    await rename(path.join(folder, 'good'), path.join(scratch.path, 'good'));
    await start(['good']);
    expect(repository.ready).toBe(false);
    await rename(path.join(scratch.path, 'good'), path.join(folder, 'good'));
    await retry();
    expect(repository.ready).toBe(true);
  });

  it('A1 is retried after a load that threw', async () => {
    await truncate(path.join(folder, 'good/1/model.onnx'), 0);
    await start(['good']);
    expect(clock.armed).toBe(1);
    vi.spyOn(Slot.prototype, 'rest').mockImplementationOnce(() => {
      throw new Error('a bug');
    });
    await expect(repository.load('good')).rejects.toThrow('a bug');
    expect(clock.armed).toBe(1);
  });

  it('is left alone after its unload, and so is a healthy one', async () => {
    await mkdir(path.join(folder, 'bad'));
    await start();
    expect(clock.armed).toBe(1);
    await repository.unload('bad', false);
    expect(clock.armed).toBe(0);
    await repository.unload('add', false);
    await retry();
    // The ensemble of an unloaded part does not bring the part back.
    expect((await stateOf('add'))?.reason).toBe('unloaded');
    expect(clock.armed).toBe(0);
    await rm(folder, { recursive: true });
  });
});
