import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { headerLengthField } from '../../../shared/kserve/body.ts';
import type { Datatype } from '../../../shared/kserve/datatype.ts';
import { readBytes } from '../../../shared/kserve/tensor.ts';
import { bytesTensor } from '../../shared/kserve/made.ts';
import { askInfer, floats, infer, jsonOf, post, readReply, row, send } from './client.ts';
import type { Contract } from './implementation.ts';

const carried: [string, Datatype, number[]][] = [
  ['identity_fp32', 'FP32', [0, 0, 128, 63, 0, 0, 192, 127]],
  ['identity_int64', 'INT64', [255, 255, 255, 255, 255, 255, 255, 127, 1, 0, 0, 0, 0, 0, 0, 128]],
  ['identity_fp16', 'FP16', [0, 60, 1, 0]],
  ['identity_bool', 'BOOL', [1, 0]],
];

export const tensorsContract: Contract = (_implementation, engine) =>
  describe('tensors', () => {
    for (const [model, datatype, bytes] of carried) {
      it(`carries ${datatype} as binary without touching a bit`, async () => {
        const { outputs } = await infer(engine(), model, [
          { name: 'X', datatype, shape: [1, 2], bytes: Uint8Array.from(bytes) },
        ]);
        expect(outputs).toHaveLength(1);
        expect({ ...outputs[0], bytes: [...outputs[0]!.bytes] }).toEqual({ name: 'Y', datatype, shape: [1, 2], bytes });
      });
    }

    it('carries text, empty and beyond ASCII, both ways', async () => {
      const texts = ['', 'plain', 'Ohrmuschel – 耳介'];
      const { outputs } = await infer(engine(), 'identity_text', [bytesTensor('X', texts, [1, 3])]);
      const elements = readBytes(outputs[0]!);
      expect(elements.ok && elements.value.map((one) => new TextDecoder().decode(one))).toEqual(texts);
      const reply = await askInfer(engine(), 'identity_text', [bytesTensor('X', texts, [1, 3])], {}, 'json');
      expect(jsonOf(reply)).toMatchObject({ outputs: [{ name: 'Y', datatype: 'BYTES', shape: [1, 3], data: texts }] });
    });

    it('answers JSON with JSON, nested or flat', async () => {
      const A = {
        name: 'A',
        datatype: 'FP32',
        shape: [2, 2],
        data: [
          [1, 2],
          [3, 4],
        ],
      };
      const B = { name: 'B', datatype: 'FP32', shape: [2, 2], data: [10, 20, 30, 40] };
      const reply = await post(engine(), '/v2/models/add/infer', { id: 'request 7', inputs: [A, B] });
      expect(reply.status).toBe(200);
      expect(jsonOf(reply)).toMatchObject({
        id: 'request 7',
        model_name: 'add',
        model_version: '1',
        outputs: [
          { name: 'SUM', datatype: 'FP32', shape: [2, 2], data: [11, 22, 33, 44] },
          { name: 'DIFFERENCE', datatype: 'FP32', shape: [2, 2], data: [-9, -18, -27, -36] },
        ],
      });
    });

    it('returns only requested outputs, each in its own form', async () => {
      const inputs = [row('A', 1), row('B', 2)];
      expect(
        (await infer(engine(), 'add', inputs, { outputs: ['DIFFERENCE'] })).outputs.map(({ name }) => name),
      ).toEqual(['DIFFERENCE']);
      const head = {
        inputs: [
          { name: 'A', datatype: 'FP32', shape: [1, 1], data: [1] },
          { name: 'B', datatype: 'FP32', shape: [1, 1], data: [2] },
        ],
        outputs: [{ name: 'SUM', parameters: { binary_data: true } }, { name: 'DIFFERENCE' }],
      };
      const reply = await post(engine(), '/v2/models/add/infer', head);
      const length = Number(reply.headers.get(headerLengthField));
      expect(reply.body.byteLength - length).toBe(4);
      const response = readReply(reply);
      expect([floats(response, 'SUM'), floats(response, 'DIFFERENCE')]).toEqual([[3], [-1]]);
    });

    it('serves a model without batching', async () => {
      const tensor = { name: 'X', datatype: 'FP32' as const, shape: [2, 1], bytes: new Uint8Array(8) };
      expect((await infer(engine(), 'whole', [tensor])).outputs[0]?.shape).toEqual([2, 1]);
    });

    it('accepts an input without any elements', async () => {
      const tensor = { name: 'X', datatype: 'FP32' as const, shape: [1, 0], bytes: new Uint8Array(0) };
      expect((await infer(engine(), 'identity_fp32', [tensor])).outputs[0]?.shape).toEqual([1, 0]);
    });

    it('takes a bare tensor as the one input (header length 0)', async () => {
      const body = new Uint8Array(Float32Array.from([1, 2, 3]).buffer);
      const reply = await send(engine(), 'POST', '/v2/models/identity_fp32/infer', body, { [headerLengthField]: '0' });
      expect(floats(readReply(reply), 'Y')).toEqual([1, 2, 3]);
    });

    it('unpacks a gzip body; the header counts unpacked bytes', async () => {
      const body = gzipSync(JSON.stringify({ inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 1], data: [5] }] }));
      const reply = await send(engine(), 'POST', '/v2/models/identity_fp32/infer', body, {
        'content-encoding': 'gzip',
      });
      expect(floats(readReply(reply), 'Y')).toEqual([5]);
    });
  });
