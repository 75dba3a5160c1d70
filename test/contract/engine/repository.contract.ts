import { describe, expect, it } from 'vitest';
import { repositoryIndex } from '../../../shared/kserve/repository.ts';
import { askInfer, errorOf, eventually, get, infer, jsonOf, metric, post, row } from './client.ts';
import { type Contract, type Running, where } from './implementation.ts';
import { testModels } from './test-models.ts';

async function stateOf(engine: Running, model: string) {
  const index = repositoryIndex.parse(jsonOf(await post(engine, '/v2/repository/index')));
  return index.find(({ name }) => name === model);
}
const untilState = (engine: Running, model: string, state: string) =>
  eventually(
    () => stateOf(engine, model),
    (seen) => seen?.state === state,
  );
const load = (engine: Running, model: string, parameters?: object) =>
  post(engine, `/v2/repository/models/${model}/load`, parameters ? { parameters } : {});
const unload = (engine: Running, model: string, parameters?: object) =>
  post(engine, `/v2/repository/models/${model}/unload`, parameters ? { parameters } : {});

const base = testModels.identity_fp32!;

export const repositoryContract: Contract = (implementation, engine) =>
  describe('model repository', () => {
    it('lists every model with its state', async () => {
      const index = repositoryIndex.parse(jsonOf(await post(engine(), '/v2/repository/index')));
      const names = new Set(index.filter(({ state }) => state === 'READY').map(({ name }) => name));
      for (const name of Object.keys(testModels)) expect(names).toContain(name);
    });

    it('unloads, says so, and loads again', async () => {
      expect((await unload(engine(), 'identity_bool')).status).toBe(200);
      const gone = await untilState(engine(), 'identity_bool', 'UNAVAILABLE');
      expect(gone?.reason).toBe('unloaded');
      expect((await get(engine(), '/v2/models/identity_bool/ready')).status).toBe(400);
      const tensor = { name: 'X', datatype: 'BOOL' as const, shape: [1, 1], bytes: Uint8Array.of(1) };
      expect((await askInfer(engine(), 'identity_bool', [tensor])).status).toBeGreaterThanOrEqual(400);
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

    it('A18: an ensemble goes down with a model it is made of, and comes back with it', async () => {
      expect((await unload(engine(), 'add')).status).toBe(200);
      await untilState(engine(), 'add', 'UNAVAILABLE');
      const down = await untilState(engine(), 'twice', 'UNAVAILABLE');
      expect(down?.reason).toContain('add');
      expect((await load(engine(), 'add')).status).toBe(200);
      expect((await load(engine(), 'twice')).status).toBe(200);
      await untilState(engine(), 'twice', 'READY');
      expect((await infer(engine(), 'twice', [row('P', 1), row('Q', 1)])).outputs).toHaveLength(2);
    });

    it('A18: an ensemble that no longer fits its parts does not replace the one that does', async () => {
      const good = testModels.twice!;
      await engine().put({
        twice: { config: good.config.replace('key: "SUM" value: "half"', 'key: "SUM" value: "lost"') },
      });
      const reply = await load(engine(), 'twice');
      expect(reply.status).toBe(implementation.oddities.loadFailed);
      expect(errorOf(reply)).toContain('half');
      expect((await infer(engine(), 'twice', [row('P', 1), row('Q', 1)])).outputs).toHaveLength(2);
      await engine().put({ twice: good });
      expect((await load(engine(), 'twice')).status).toBe(200);
    });

    it('takes a configuration with the load, until the next load without one', async () => {
      const config = jsonOf(await get(engine(), '/v2/models/identity_int64/config')) as Record<string, unknown>;
      const changed = JSON.stringify({ ...config, max_batch_size: 2 });
      expect((await load(engine(), 'identity_int64', { config: changed })).status).toBe(200);
      expect(jsonOf(await get(engine(), '/v2/models/identity_int64/config'))).toMatchObject({ max_batch_size: 2 });
      expect((await load(engine(), 'identity_int64')).status).toBe(200);
      expect(jsonOf(await get(engine(), '/v2/models/identity_int64/config'))).toMatchObject({ max_batch_size: 8 });
    });

    it('refuses an unknown model and unknown parameters', async () => {
      expect((await load(engine(), 'nobody')).status).toBe(implementation.oddities.unknownLoad);
      expect((await load(engine(), 'add', { surprise: 'x' })).status).toBeGreaterThanOrEqual(400);
      expect((await unload(engine(), 'nobody')).status).toBe(200);
    });

    where(implementation, 'strict config', 'refuses a field it does not know, with line and name', async () => {
      await engine().put({ odd: { ...base, config: `${base.config}\nmax_bach_size: 4` } });
      const reply = await load(engine(), 'odd');
      expect(reply.status).toBe(implementation.oddities.loadFailed);
      expect(errorOf(reply)).toMatch(/line \d+: ModelConfig has no field 'max_bach_size'/);
      expect((await stateOf(engine(), 'odd'))?.reason).toContain('max_bach_size');
      await unload(engine(), 'odd');
    });

    it('keeps serving the old model when its successor does not load', async () => {
      const good = testModels.identity_fp16!;
      await engine().put({ identity_fp16: { ...good, config: good.config.replaceAll('TYPE_FP16', 'TYPE_FP64') } });
      const reply = await load(engine(), 'identity_fp16');
      expect(reply.status).toBe(implementation.oddities.loadFailed);
      const tensor = { name: 'X', datatype: 'FP16' as const, shape: [1, 1], bytes: Uint8Array.of(0, 60) };
      expect((await infer(engine(), 'identity_fp16', [tensor])).outputs).toHaveLength(1);
      await engine().put({ identity_fp16: good });
      expect((await load(engine(), 'identity_fp16')).status).toBe(200);
    });

    where(implementation, 'not honoured', 'accepts what only a GPU can do, and reports it', async () => {
      const wishes = `instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]
optimization { execution_accelerators { gpu_execution_accelerator : [ { name : "tensorrt" parameters { key: "precision_mode" value: "FP16" } } ] } cuda { graphs: true } }
response_cache { enable: true }`;
      await engine().put({ gpu: { ...base, config: `${base.config}\n${wishes}` } });
      expect((await load(engine(), 'gpu')).status).toBe(200);
      const { not_honoured: list } = jsonOf(await get(engine(), '/v2/models/gpu/config')) as { not_honoured: string[] };
      for (const word of ['KIND_GPU', 'gpus', 'tensorrt', 'cuda', 'response_cache']) {
        expect(
          list.some((text) => text.includes(word)),
          word,
        ).toBe(true);
      }
      expect((await infer(engine(), 'gpu', [row('X', 4)])).outputs).toHaveLength(1);
      await unload(engine(), 'gpu');
    });

    where(
      implementation,
      'sequence refusal',
      'refuses a sequence model clearly instead of serving it wrongly',
      async () => {
        await engine().put({
          stateful: { ...base, config: `${base.config}\nsequence_batching { oldest { max_candidate_sequences: 4 } }` },
        });
        const reply = await load(engine(), 'stateful');
        expect(reply.status).toBe(implementation.oddities.loadFailed);
        expect(errorOf(reply)).toContain('not yet supported');
        await unload(engine(), 'stateful');
      },
    );

    where(implementation, 'lasting counters', 'R14: counters go on after a reload', async () => {
      await infer(engine(), 'whole', [{ name: 'X', datatype: 'FP32', shape: [2, 1], bytes: new Uint8Array(8) }]);
      const before = await metric(engine(), 'nv_inference_request_success', { model: 'whole' });
      await unload(engine(), 'whole');
      await load(engine(), 'whole');
      expect(await metric(engine(), 'nv_inference_request_success', { model: 'whole' })).toBe(before);
    });
  });
