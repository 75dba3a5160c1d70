import { describe, expect, it } from 'vitest';
import { commonLevels, levelOf } from '../../../../infra/pool/agent/engine/level.ts';
import { readQueues } from '../../../../infra/pool/agent/engine/queues.ts';
import { classes } from '../../../../shared/tenant/claims.ts';

describe('A2: classes and the priority levels of an engine', () => {
  it.each([
    [0, [0, 0, 0, 0]],
    [1, [1, 1, 1, 1]],
    [2, [1, 1, 2, 2]],
    [3, [1, 2, 3, 3]],
    [4, [1, 2, 3, 4]],
    [9, [1, 2, 3, 4]],
  ])('a model with %i', (levels, expected) => {
    expect(classes.map((name) => levelOf(name, levels))).toEqual(expected);
  });

  it('a requested priority never beats the class, nor a more urgent class', () => {
    for (let levels = 0; levels <= 10; levels++) {
      for (const wish of [0, 1, 2, 3, 4, 5, 9, 2 ** 32, 2 ** 53]) {
        const given = classes.map((name) => levelOf(name, levels, wish));
        expect(given).toEqual(given.toSorted((a, b) => a - b));
        for (const [at, name] of classes.entries()) {
          expect(given[at]).toBeGreaterThanOrEqual(levelOf(name, levels));
          expect(given[at]).toBeLessThanOrEqual(levels);
        }
      }
    }
  });

  it('A18: an ensemble has the levels common to its steps that have any', () => {
    const queues = (...levels: number[]) => levels.map((count, at) => ({ model: String(at), levels: count }));
    expect(commonLevels(queues(4, 0, 2))).toBe(2);
    expect(commonLevels(queues(0, 0))).toBe(0);
    expect(commonLevels([])).toBe(0);
  });
});

describe('A18: the queues of a model', () => {
  const step = (...names: string[]) => ({ ensemble_scheduling: { step: names.map((model_name) => ({ model_name })) } });
  const levels = (count: number | string) => ({ dynamic_batching: { priority_levels: count } });
  const read = (configs: Record<string, object>) =>
    readQueues('m', async (model) => configs[model] ?? Promise.reject(new Error(`no ${model}`)));

  it('in its own queue, with the levels it has', async () => {
    expect(await read({ m: levels(4) })).toEqual([{ model: 'm', levels: 4 }]);
    expect(await read({ m: levels('2') })).toEqual([{ model: 'm', levels: 2 }]);
    for (const config of [{}, { dynamic_batching: {} }, { sequence_batching: {} }])
      expect(await read({ m: config })).toEqual([{ model: 'm', levels: 0 }]);
  });

  it('an ensemble has those of its steps, nested, each once', async () => {
    const configs = { m: step('a', 'b', 'a'), a: levels(4), b: step('a', 'c'), c: {} };
    expect(await read(configs)).toEqual([
      { model: 'a', levels: 4 },
      { model: 'c', levels: 0 },
    ]);
  });

  it('are unknown for a missing step, a bad configuration or endless steps', async () => {
    await expect(read({ m: step('a') })).rejects.toThrow('no a');
    await expect(read({ m: levels('many') })).rejects.toThrow();
    const endless = readQueues('0', async (model) => step(String(Number(model) + 1)));
    await expect(endless).rejects.toThrow('too many steps');
  });
});
