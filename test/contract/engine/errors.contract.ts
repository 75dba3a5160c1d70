import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { headerLengthField } from '../../../shared/kserve/body.ts';
import { askInfer, counter, errorOf, floats, infer, post, row, send } from './client.ts';
import { type Contract, differing } from './implementation.ts';

const path = '/v2/models/add/infer';
const A = { name: 'A', datatype: 'FP32', shape: [1, 1], data: [1] };
const B = { ...A, name: 'B' };
const gzip = { 'content-encoding': 'gzip' };

export const errorsContract: Contract = (implementation, engine) =>
  describe('errors', () => {
    it('names an unknown model', async () => {
      const reply = await askInfer(engine(), 'nobody', [row('X', 1)]);
      expect(reply.status).toBe(404);
    });

    it('refuses a shape the model does not take', async () => {
      const tensor = { name: 'X', datatype: 'FP32' as const, shape: [1, 1, 1], bytes: new Uint8Array(4) };
      const reply = await askInfer(engine(), 'identity_fp32', [tensor]);
      expect(reply.status).toBe(400);
      expect(errorOf(reply)).toContain('X');
    });

    differing(implementation, 'notJson', 'refuses a body that is not JSON', async (status) => {
      const reply = await send(engine(), 'POST', path, 'hello', { 'content-type': 'application/json' });
      expect(reply.status).toBe(status);
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
      ['batches that differ', { inputs: [A, { ...B, shape: [2, 1], data: [1, 1] }] }, 'batch size'],
    ];
    for (const [what, body, named] of wrong) {
      it(`refuses ${what} with its name`, async () => {
        const reply = await post(engine(), path, body);
        expect(reply.status).toBe(400);
        expect(errorOf(reply)).toContain(named);
      });
    }

    differing(implementation, 'unfilledShape', 'refuses fewer values than the shape needs', async (status) => {
      const reply = await post(engine(), path, { inputs: [{ ...A, shape: [1, 2] }, B] });
      expect(reply.status).toBe(status);
      expect(errorOf(reply)).toMatch(/shape/i);
    });

    it('refuses lengths beyond the body or the binary data', async () => {
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

    differing(implementation, 'largeBody', 'refuses a body over 64 MiB, also a packed one', async (expected) => {
      // Neither body is JSON: an engine that reads it all answers that. Some engines answer during the upload
      // and close the connection, which also refuses it.
      const status = expected === 'refused' ? 400 : implementation.differences.notJson?.answer;
      const reply = await send(engine(), 'POST', path, new Uint8Array(64 * 2 ** 20 + 1)).catch(() => undefined);
      if (reply) expect(reply.status).toBe(status);
      const bomb = await send(engine(), 'POST', path, gzipSync(new Uint8Array(65 * 2 ** 20)), gzip);
      expect(bomb.status).toBe(status);
      expect((await infer(engine(), 'add', [row('A', 1), row('B', 1)])).outputs).toHaveLength(2);
    });

    it('refuses a body that does not unpack', async () => {
      expect((await send(engine(), 'POST', path, 'not gzip', gzip)).status).toBe(400);
    });

    it('one request that the network cannot digest does not hurt its neighbours', async () => {
      const replies = await Promise.all([0, 7, 1].map((value) => askInfer(engine(), 'index', [row('X', value)])));
      expect(replies.map(({ status }) => status)).toEqual([200, 500, 200]);
      expect(errorOf(replies[1]!)).not.toBe('');
      expect(floats(await infer(engine(), 'identity_fp32', [row('X', 1)]), 'Y')).toEqual([1]);
    });

    differing(implementation, 'failure', 'R14: counts a request that the network failed on', async (expected) => {
      const labels = { model: 'index', reason: 'BACKEND' };
      const failed = await counter(engine(), 'nv_inference_request_failure', labels);
      const succeeded = await counter(engine(), 'nv_inference_request_success', { model: 'index' });
      await Promise.all([0, 7, 1].map((value) => askInfer(engine(), 'index', [row('X', value)])));
      const [failures, successes] = expected === 'failure' ? [1, 2] : [0, 3];
      expect(await counter(engine(), 'nv_inference_request_failure', labels)).toBe(failed + failures);
      expect(await counter(engine(), 'nv_inference_request_success', { model: 'index' })).toBe(succeeded + successes);
    });
  });
