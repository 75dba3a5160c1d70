import { describe, expect, it } from 'vitest';
import { modelMetadata, serverMetadata } from '../../../shared/kserve/metadata.ts';
import { get, jsonOf, send } from './client.ts';
import type { Contract } from './implementation.ts';

export const healthContract: Contract = (_implementation, engine) =>
  describe('health and metadata', () => {
    it('is live and ready', async () => {
      expect((await get(engine(), '/v2/health/live')).status).toBe(200);
      expect((await get(engine(), '/v2/health/ready')).status).toBe(200);
    });

    it('describes itself', async () => {
      const server = serverMetadata.parse(jsonOf(await get(engine(), '/v2')));
      expect(server.extensions).toEqual(
        expect.arrayContaining(['binary_tensor_data', 'statistics', 'model_repository']),
      );
    });

    it('describes a model with its batch dimension', async () => {
      const model = modelMetadata.parse(jsonOf(await get(engine(), '/v2/models/add')));
      expect(model).toMatchObject({ name: 'add', versions: ['1'] });
      expect(model.inputs).toEqual([
        { name: 'A', datatype: 'FP32', shape: [-1, -1] },
        { name: 'B', datatype: 'FP32', shape: [-1, -1] },
      ]);
      expect(model.outputs.map(({ name }) => name)).toEqual(['SUM', 'DIFFERENCE']);
    });

    it('describes a model without batching as it is', async () => {
      const model = modelMetadata.parse(jsonOf(await get(engine(), '/v2/models/whole/versions/1')));
      expect(model.inputs).toEqual([{ name: 'X', datatype: 'FP32', shape: [2, -1] }]);
    });

    it('reports the readiness of a model', async () => {
      expect((await get(engine(), '/v2/models/add/ready')).status).toBe(200);
      expect((await get(engine(), '/v2/models/add/versions/1/ready')).status).toBe(200);
      expect((await get(engine(), '/v2/models/nobody/ready')).status).toBe(400);
      expect((await get(engine(), '/v2/models/add/versions/7/ready')).status).toBe(400);
    });

    it('shows the settled configuration', async () => {
      const config = jsonOf(await get(engine(), '/v2/models/full_batches/config'));
      expect(config).toMatchObject({
        name: 'full_batches',
        max_batch_size: 4,
        dynamic_batching: { preferred_batch_size: [4], max_queue_delay_microseconds: 60_000_000 },
        version_policy: { latest: { num_versions: 1 } },
      });
    });

    it('does not know other addresses and verbs', async () => {
      expect((await get(engine(), '/v2/models/add/anything')).status).toBe(404);
      expect((await send(engine(), 'DELETE', '/v2/models/add/infer')).status).toBe(405);
    });
  });
