import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { headerLengthField } from '../../../shared/kserve/body.ts';
import { askInfer, errorOf, floats, infer, metric, post, row, send } from './client.ts';
import { type Contract, where } from './implementation.ts';

const path = '/v2/models/add/infer';
const A = { name: 'A', datatype: 'FP32', shape: [1, 1], data: [1] };
const B = { ...A, name: 'B' };

export const errorsContract: Contract = (implementation, engine) =>
  describe('errors', () => {
    it('names an unknown model', async () => {
      const reply = await askInfer(engine(), 'nobody', [row('X', 1)]);
      expect(reply.status).toBe(404);
    });

    it('refuses a shape the model does not take', async () => {
      const tensor = { name: 'X', datatype: 'FP32' as const, shape: [1, 1, 1], bytes: new Uint8Array(4) };
      const reply = await askInfer(engine(), 'identity_fp32', [tensor]);
      expect(reply.status).toBe(implementation.oddities.badShape);
      expect(errorOf(reply)).toContain('X');
    });

    it('refuses a body that is not JSON', async () => {
      const reply = await send(engine(), 'POST', path, 'hello', { 'content-type': 'application/json' });
      expect(reply.status).toBe(implementation.oddities.notJson);
      expect(errorOf(reply)).not.toBe('');
    });

    const wrong: [string, unknown, string][] = [
      ['a missing input', { inputs: [A] }, 'B'],
      ['an input too many', { inputs: [A, B, { ...A, name: 'C' }] }, 'C'],
      ['another data type', { inputs: [{ ...A, datatype: 'INT32' }, B] }, 'A'],
      ['an unknown output', { inputs: [A, B], outputs: [{ name: 'NONE' }] }, 'NONE'],
      [
        'too large a batch',
        { inputs: [A, B].map((one) => ({ ...one, shape: [5, 1], data: [1, 1, 1, 1, 1] })) },
        'batch',
      ],
      ['batches that differ', { inputs: [A, { ...B, shape: [2, 1], data: [1, 1] }] }, 'B'],
      ['fewer values than the shape needs', { inputs: [{ ...A, shape: [1, 2] }, B] }, 'A'],
    ];
    for (const [what, body, named] of wrong) {
      it(`refuses ${what} and names it`, async () => {
        const reply = await post(engine(), path, body);
        expect([400, implementation.oddities.badShape]).toContain(reply.status);
        expect(errorOf(reply)).toContain(named);
      });
    }

    it('refuses a header length beyond the body and a binary tensor beyond its end', async () => {
      const json = JSON.stringify({
        inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 4], parameters: { binary_data_size: 16 } }],
      });
      const length = String(json.length);
      const short = await send(engine(), 'POST', '/v2/models/identity_fp32/infer', `${json}12345678`, {
        [headerLengthField]: length,
      });
      expect(short.status).toBe(400);
      const beyond = await send(engine(), 'POST', '/v2/models/identity_fp32/infer', json, {
        [headerLengthField]: '9999',
      });
      expect(beyond.status).toBe(400);
    });

    it('refuses a body over 64 MiB', async () => {
      // Some engines answer while the body is still coming and close the connection; both are a refusal.
      const reply = await send(engine(), 'POST', path, new Uint8Array(64 * 2 ** 20 + 1)).catch(() => undefined);
      if (reply) expect(reply.status).toBe(400);
      expect((await infer(engine(), 'add', [row('A', 1), row('B', 1)])).outputs).toHaveLength(2);
    });

    where(implementation, 'compression', 'refuses a body that unpacks to more than 64 MiB, or not at all', async () => {
      const gzip = { 'content-encoding': 'gzip' };
      const bomb = await send(engine(), 'POST', path, gzipSync(new Uint8Array(65 * 2 ** 20)), gzip);
      expect(bomb.status).toBe(400);
      expect((await send(engine(), 'POST', path, 'not gzip', gzip)).status).toBe(400);
    });

    where(
      implementation,
      'poisoned batch',
      'one request that the network cannot digest does not hurt its neighbours',
      async () => {
        const failed = await metric(engine(), 'nv_inference_request_failure', { model: 'index', reason: 'BACKEND' });
        const asked = [0, 7, 1].map((value) => askInfer(engine(), 'index', [row('X', value)]));
        const replies = await Promise.all(asked);
        expect(replies.map(({ status }) => status)).toEqual([200, 500, 200]);
        expect(errorOf(replies[1]!)).not.toBe('');
        expect(await metric(engine(), 'nv_inference_request_failure', { model: 'index', reason: 'BACKEND' })).toBe(
          failed + 1,
        );
        expect(floats(await infer(engine(), 'identity_fp32', [row('X', 1)]), 'Y')).toEqual([1]);
      },
    );
  });
