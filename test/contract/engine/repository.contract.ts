import { describe, expect, it } from 'vitest';
import {
  askInfer,
  counter,
  errorOf,
  get,
  infer,
  jsonOf,
  load,
  post,
  repositoryIndex,
  row,
  stateOf,
  unload,
  untilState,
} from './client.ts';
import { type Contract, differing } from './implementation.ts';
import { testModels } from './test-models.ts';

const base = testModels.identity_fp32!;

export const repositoryContract: Contract = (implementation, engine) =>
  describe('model repository', () => {
    it('lists every model with its state', async () => {
      const index = repositoryIndex.parse(jsonOf(await post(engine(), '/v2/repository/index')));
      const names = new Set(index.filter(({ state }) => state === 'READY').map(({ name }) => name));
      for (const name of Object.keys(testModels)) expect(names).toContain(name);
    });

    differing(implementation, 'unload', 'reports an unload and loads again', async (expected) => {
      expect((await unload(engine(), 'identity_bool')).status).toBe(200);
      // `whenever`: the model may be gone by now, or a moment later.
      if (expected === 'done') expect((await stateOf(engine(), 'identity_bool'))?.state).toBe('UNAVAILABLE');
      const gone = await untilState(engine(), 'identity_bool', 'UNAVAILABLE');
      expect(gone?.reason).toBe('unloaded');
      expect((await get(engine(), '/v2/models/identity_bool/ready')).status).toBe(400);
      const tensor = { name: 'X', datatype: 'BOOL' as const, shape: [1, 1], bytes: Uint8Array.of(1) };
      const refused = await askInfer(engine(), 'identity_bool', [tensor]);
      expect(refused.status).toBe(404);
      expect(errorOf(refused)).toContain("'identity_bool' has no available versions");
      const named = await askInfer(engine(), 'identity_bool/versions/1', [tensor]);
      expect(named.status).toBe(503);
      expect(errorOf(named)).toContain("'identity_bool' version 1 is not at ready state");
      expect((await get(engine(), '/v2/health/ready')).status).toBe(200);
      expect((await load(engine(), 'identity_bool')).status).toBe(200);
      expect((await infer(engine(), 'identity_bool', [tensor])).outputs).toHaveLength(1);
    });

    it('takes a model that appears later, and a new configuration of it', async () => {
      await engine().put({ later: base });
      expect((await stateOf(engine(), 'later'))?.state).toBeUndefined();
      expect((await load(engine(), 'later')).status).toBe(200);
      expect((await infer(engine(), 'later', [row('X', 1)])).model).toBe('later');
      await engine().put({ later: { ...base, config: base.config.replace('max_batch_size: 8', 'max_batch_size: 3') } });
      expect((await load(engine(), 'later')).status).toBe(200);
      expect(jsonOf(await get(engine(), '/v2/models/later/config'))).toMatchObject({ max_batch_size: 3 });
      await unload(engine(), 'later');
      await untilState(engine(), 'later', 'UNAVAILABLE');
    });

    it('A18: an ensemble goes down and up with a model of its steps', async () => {
      expect((await unload(engine(), 'add')).status).toBe(200);
      await untilState(engine(), 'add', 'UNAVAILABLE');
      await untilState(engine(), 'twice', 'UNAVAILABLE');
      expect((await askInfer(engine(), 'twice', [row('P', 1), row('Q', 1)])).status).toBeGreaterThanOrEqual(400);
      expect((await load(engine(), 'add')).status).toBe(200);
      await untilState(engine(), 'twice', 'READY');
      expect((await infer(engine(), 'twice', [row('P', 1), row('Q', 1)])).outputs).toHaveLength(2);
    });

    it('A18: only models loaded for an ensemble are unloaded with it', async () => {
      expect((await unload(engine(), 'twice', { unload_dependents: true })).status).toBe(200);
      await untilState(engine(), 'twice', 'UNAVAILABLE');
      expect((await infer(engine(), 'add', [row('A', 1), row('B', 1)])).outputs).toHaveLength(2);
      expect((await load(engine(), 'twice')).status).toBe(200);
      const config = (testModels.twice?.config ?? '').replaceAll('"add"', '"piece"');
      await engine().put({ piece: testModels.add!, whole_first: { config }, whole_second: { config } });
      for (const name of ['whole_first', 'whole_second']) expect((await load(engine(), name)).status).toBe(200);
      expect((await stateOf(engine(), 'piece'))?.state).toBe('READY');
      await unload(engine(), 'whole_first', { unload_dependents: true });
      await untilState(engine(), 'whole_first', 'UNAVAILABLE');
      expect((await infer(engine(), 'whole_second', [row('P', 1), row('Q', 1)])).outputs).toHaveLength(2);
      await unload(engine(), 'whole_second', { unload_dependents: true });
      await untilState(engine(), 'piece', 'UNAVAILABLE');
    });

    differing(
      implementation,
      'downReason',
      'A18: the index gives the reason of an unready ensemble',
      async (expected) => {
        await unload(engine(), 'add');
        const down = await untilState(engine(), 'twice', 'UNAVAILABLE');
        if (expected === 'names the part') expect(down?.reason).toContain('add');
        else expect(down?.reason).toBe(expected);
        await untilState(engine(), 'add', 'UNAVAILABLE');
        await load(engine(), 'add');
        await load(engine(), 'twice');
        await untilState(engine(), 'twice', 'READY');
      },
    );

    /**
     * Puts `twice` with another step, and back. Returns the statuses of its load and of a request after it.
     */
    async function misfit(from: string, to: string): Promise<{ loaded: number; asked: number }> {
      const good = testModels.twice!;
      await engine().put({ twice: { config: good.config.replace(from, to) } });
      const loaded = (await load(engine(), 'twice')).status;
      const asked = (await askInfer(engine(), 'twice', [row('P', 1), row('Q', 1)])).status;
      await engine().put({ twice: good });
      expect((await load(engine(), 'twice')).status).toBe(200);
      expect((await infer(engine(), 'twice', [row('P', 1), row('Q', 1)])).outputs).toHaveLength(2);
      return { loaded, asked };
    }

    const unfit = 'A18: an ensemble that no longer fits does not replace the one that does: a step takes';
    it(`${unfit} missing outputs of a step`, async () => {
      const { loaded, asked } = await misfit('key: "SUM" value: "half"', 'key: "SUM" value: "lost"');
      expect(loaded).toBeGreaterThanOrEqual(400);
      expect(asked).toBe(200);
    });

    differing(implementation, 'misfit', `${unfit} an input that its model lacks`, async (expected) => {
      const { loaded, asked } = await misfit('key: "A" value: "half"', 'key: "NONE" value: "half"');
      expect(loaded).toBeGreaterThanOrEqual(400);
      if (expected === 'keeps the old one') expect(asked).toBe(200);
      else expect(asked).toBeGreaterThanOrEqual(400);
    });

    differing(implementation, 'unknownLoad', 'refuses an unknown model and unknown parameters', async (status) => {
      expect((await load(engine(), 'nobody')).status).toBe(status);
      expect((await load(engine(), 'add', { surprise: 'x' })).status).toBeGreaterThanOrEqual(400);
      expect((await unload(engine(), 'nobody')).status).toBe(200);
    });

    differing(
      implementation,
      'unreadable',
      'refuses a field it does not know, with line and name',
      async (expected) => {
        await engine().put({ odd: { ...base, config: `${base.config}\nmax_bach_size: 4` } });
        const reply = await load(engine(), 'odd');
        expect(reply.status).toBe(expected.status);
        expect(errorOf(reply)).toMatch(expected.says);
        expect((await stateOf(engine(), 'odd'))?.state).not.toBe('READY');
        await unload(engine(), 'odd');
      },
    );

    it('keeps serving the old model when its successor does not load', async () => {
      const good = testModels.identity_fp16!;
      await engine().put({ identity_fp16: { ...good, config: good.config.replaceAll('TYPE_FP16', 'TYPE_FP64') } });
      const reply = await load(engine(), 'identity_fp16');
      expect(reply.status).toBe(400);
      const tensor = { name: 'X', datatype: 'FP16' as const, shape: [1, 1], bytes: Uint8Array.of(0, 60) };
      expect((await infer(engine(), 'identity_fp16', [tensor])).outputs).toHaveLength(1);
      await engine().put({ identity_fp16: good });
      expect((await load(engine(), 'identity_fp16')).status).toBe(200);
    });

    differing(implementation, 'gpuSettings', 'accepts and reports GPU-only settings', async (expected) => {
      const wishes = `instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]
optimization { execution_accelerators { gpu_execution_accelerator : [ { name : "tensorrt" parameters { key: "precision_mode" value: "FP16" } } ] } cuda { graphs: true } }
response_cache { enable: true }`;
      await engine().put({ gpu: { ...base, config: `${base.config}\n${wishes}` } });
      const reply = await load(engine(), 'gpu');
      if (expected === 'refused') {
        expect(reply.status).toBe(400);
        expect(errorOf(reply)).toContain('gpu');
      } else {
        expect(reply.status).toBe(200);
        const { not_honoured: list } = jsonOf(await get(engine(), '/v2/models/gpu/config')) as {
          not_honoured: string[];
        };
        for (const word of ['KIND_GPU', 'gpus', 'tensorrt', 'cuda', 'response_cache'])
          expect(list.filter((text) => text.includes(word)).length, word).toBeGreaterThan(0);
        expect((await infer(engine(), 'gpu', [row('X', 4)])).outputs).toHaveLength(1);
      }
      await unload(engine(), 'gpu');
    });

    it('takes a sequence model that keeps nothing between its requests', async () => {
      const batching = 'sequence_batching { oldest { max_candidate_sequences: 4 } }';
      await engine().put({ stateful: { ...base, config: `${base.config}\n${batching}` } });
      expect((await load(engine(), 'stateful')).status).toBe(200);
      const ask = (parameters: object) =>
        askInfer(engine(), 'stateful', [row('X', 1)], { parameters: { sequence_id: 7, ...parameters } });
      expect((await ask({})).status).toBe(400);
      expect((await ask({ sequence_start: true })).status).toBe(200);
      expect((await ask({ sequence_end: true })).status).toBe(200);
      expect((await ask({})).status).toBe(400);
      await unload(engine(), 'stateful');
    });

    differing(implementation, 'counters', 'R14: counters go on after a reload', async (expected) => {
      const ask = () =>
        infer(engine(), 'whole', [{ name: 'X', datatype: 'FP32', shape: [2, 1], bytes: new Uint8Array(8) }]);
      const count = () => counter(engine(), 'nv_inference_request_success', { model: 'whole' });
      await ask();
      const before = await count();
      expect(before).toBeGreaterThan(0);
      await unload(engine(), 'whole');
      await untilState(engine(), 'whole', 'UNAVAILABLE');
      await load(engine(), 'whole');
      expect(await count()).toBe(expected === 'go on' ? before : 0);
      await ask();
      expect(await count()).toBe(expected === 'go on' ? before + 1 : 1);
    });
  });
