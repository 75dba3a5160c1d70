import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../../infra/pool/agent/engine/engine.ts';
import { createKserveEngine } from '../../../infra/pool/agent/engine/kserve.ts';
import type { InferResponse } from '../../../shared/kserve/infer-response.ts';
import { LOAD_REASON_CHARACTERS } from '../../../shared/pool/heartbeat.ts';
import { askInfer, floats, infer, row, untilPending } from './client.ts';
import { type Contract, differing } from './implementation.ts';
import { type TestModel, testModels } from './test-models.ts';

const base = testModels.identity_fp32!;
const fails: TestModel = { ...base, config: base.config.replaceAll('TYPE_FP32', 'TYPE_FP64') };

/** Returns the ensemble `twice` and its step, named as the parts of one revision. */
function revisionOf(digest: string, step = testModels.add!): Record<string, TestModel> {
  const config = testModels.twice!.config.replaceAll('"add"', `"add.${digest}"`);
  return { [`twice.${digest}`]: { config }, [`add.${digest}`]: step };
}

/** An ensemble of a slow step and one after it. */
const chain = (slow: string, after: string): TestModel => ({
  config: `platform: "ensemble"
max_batch_size: 1
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling {
  step [
    { model_name: "${slow}" model_version: -1
      input_map { key: "X" value: "X" } output_map { key: "Y" value: "half" } },
    { model_name: "${after}" model_version: -1
      input_map { key: "X" value: "half" } output_map { key: "Y" value: "Y" } }
  ]
}`,
});

export const lifecycleContract: Contract = (implementation, engine) =>
  describe('load, unload, loaded and memory', () => {
    const { signal } = new AbortController();
    let client: Engine;
    beforeAll(() => {
      client = createKserveEngine(engine().url, 4);
    });
    afterAll(() => client.close());

    /** States of some models; `undefined` for those that the index lacks. */
    async function statesOf(...names: string[]) {
      const states = await client.loaded(signal);
      if (!states.ok) throw new Error(states.refusal.detail);
      return names.map((name) => states.value.get(name)?.is);
    }
    const refused = (detail: string) => ({
      ok: false,
      refusal: { reason: 'engine_failed', detail: expect.stringContaining(detail) },
    });
    const done = { ok: true };

    it('A11: a model that appears later is listed, loaded and unloaded on request', async () => {
      await engine().put({ appears: base });
      expect(await statesOf('appears', 'never')).toEqual(['idle', undefined]);
      expect(await client.load('appears', signal)).toMatchObject(done);
      expect(await client.load('appears', signal)).toMatchObject(done);
      expect(await statesOf('appears')).toEqual(['ready']);
      expect(await client.unload('appears', signal)).toMatchObject(done);
      expect(await client.unload('appears', signal)).toMatchObject(done);
      expect(await statesOf('appears')).toEqual(['idle']);
    });

    it('A11: a load of a missing model is refused with the reason', async () => {
      expect(await client.load('never', signal)).toMatchObject(refused("failed to load 'never'"));
      expect(await client.unload('never', signal)).toMatchObject(done);
    });

    it('A1: a failed load gives its reason and leaves the server ready', async () => {
      await engine().put({ fragile: fails });
      const failed = await client.load('fragile', signal);
      expect(failed).toMatchObject(refused("load failed for model 'fragile'"));
      const { detail = '' } = failed.ok ? {} : failed.refusal;
      expect(detail).toMatch(/FP64/);
      expect(detail).toMatch(new RegExp(`^.{1,${LOAD_REASON_CHARACTERS}}$`));
      expect(await statesOf('fragile')).toEqual(['failed']);
      expect(await client.retriesLoads(signal)).toBe(false);
      expect(await client.ready(signal)).toBe(true);
      await engine().put({ fragile: base });
      expect(await client.load('fragile', signal)).toMatchObject(done);
      expect(await statesOf('fragile')).toEqual(['ready']);
      await client.unload('fragile', signal);
    });

    it('A16: two revisions of an ensemble serve at once and share no step', async () => {
      const other = {
        ...testModels.add!,
        config: testModels.add!.config.replace('max_batch_size: 4', 'max_batch_size: 8'),
      };
      await engine().put({ ...revisionOf('0123456789ab'), ...revisionOf('ba9876543210', other) });
      for (const digest of ['0123456789ab', 'ba9876543210'])
        expect(await client.load(`twice.${digest}`, signal)).toMatchObject(done);
      const ask = (digest: string) => infer(engine(), `twice.${digest}`, [row('P', 1), row('Q', 1)]);
      expect((await Promise.all([ask('0123456789ab'), ask('ba9876543210')])).length).toBe(2);
      expect(await client.unload('twice.0123456789ab', signal)).toMatchObject(done);
      expect(await statesOf('twice.0123456789ab', 'add.0123456789ab')).toEqual(['idle', 'idle']);
      expect((await ask('ba9876543210')).outputs).toHaveLength(2);
      expect(await client.unload('twice.ba9876543210', signal)).toMatchObject(done);
      expect(await statesOf('add.ba9876543210')).toEqual(['idle']);
    });

    /** Sends requests until one computes in the first step while another waits for it, with longer tasks each time. */
    async function beginTwo(whole: string, slow: string): Promise<Promise<InferResponse>[]> {
      for (let turns = 50_000; turns <= 3_200_000; turns *= 4) {
        const answers = [1, 2].map((more) => infer(engine(), whole, [row('X', turns + more)]));
        const waits = untilPending(engine(), slow, 1).then(
          () => true,
          () => false,
        );
        if (await Promise.race([waits, Promise.all(answers).then(() => false)])) return answers;
      }
      throw new Error('the first step was never busy for long enough');
    }

    it('A16: an unload finishes requests that have begun, through all steps', async () => {
      const [slow, after, whole] = ['slow.0123456789ab', 'after.0123456789ab', 'whole.0123456789ab'];
      await engine().put({ [slow]: testModels.slow_timeout!, [after]: base, [whole]: chain(slow, after) });
      expect(await client.load(whole, signal)).toMatchObject(done);
      const answers = await beginTwo(whole, slow);
      expect(await client.unload(whole, signal)).toMatchObject(done);
      expect(await statesOf(whole, slow, after)).toEqual(['idle', 'idle', 'idle']);
      const values = (await Promise.all(answers)).map((answer) => floats(answer, 'Y')[0]! % 50_000);
      expect(values).toEqual([1, 2]);
      expect((await askInfer(engine(), whole, [row('X', 1)])).status).toBeGreaterThanOrEqual(400);
    });

    it('A16: requests of another model are served during a load', async () => {
      await engine().put({ beside: base });
      let loading = true;
      const load = client.load('beside', signal).finally(() => {
        loading = false;
      });
      const statuses: number[] = [];
      while (loading) statuses.push((await askInfer(engine(), 'add', [row('A', 1), row('B', 1)])).status);
      expect(await load).toMatchObject(done);
      expect(new Set(statuses)).toEqual(new Set([200]));
      await client.unload('beside', signal);
    });

    differing(
      implementation,
      'memory',
      'A11: a loaded model tells its memory, an ensemble that of its steps',
      async (expected) => {
        await engine().put(revisionOf('0123456789ab'));
        expect(await client.memory('twice.0123456789ab', signal)).toBeUndefined();
        await client.load('twice.0123456789ab', signal);
        const memory = await client.memory('add.0123456789ab', signal);
        if (expected === 'unknown') expect(memory).toBeUndefined();
        else expect(memory).toEqual({ bytes: expect.any(Number), source: 'measured' });
        expect(await client.memory('twice.0123456789ab', signal)).toEqual(memory);
        await client.unload('twice.0123456789ab', signal);
        expect(await client.memory('twice.0123456789ab', signal)).toBeUndefined();
      },
    );
  });
