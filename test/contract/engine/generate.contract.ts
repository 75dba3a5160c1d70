import { describe, expect, it } from 'vitest';
import { errorOf, jsonOf, post, type Reply, send, textOf } from './client.ts';
import { type Contract, differing } from './implementation.ts';

/** The one event of a stream, as JSON. */
function eventOf(reply: Reply): unknown {
  expect(reply.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const [, data] = /^data: (.*)\n\n$/.exec(textOf(reply)) ?? [];
  return JSON.parse(data ?? 'null');
}

export const generateContract: Contract = (implementation, engine) =>
  describe('generate', () => {
    const ask = (model: string, body: unknown, kind = 'generate', version = '') =>
      post(engine(), `/v2/models/${model}${version}/${kind}`, body);

    it('members are tensors by name: one value, or a list', async () => {
      const reply = await ask('add', { A: 3, B: 4 });
      expect(reply.status).toBe(200);
      expect(reply.headers.get('content-type')).toBe('application/json');
      expect(jsonOf(reply)).toEqual({ model_name: 'add', model_version: '1', SUM: 7, DIFFERENCE: -1 });
      expect(jsonOf(await ask('add', { A: [1, 2], B: [10, 20] }))).toMatchObject({
        SUM: [11, 22],
        DIFFERENCE: [-9, -18],
      });
      expect(jsonOf(await ask('twice', { P: [1, 2], Q: [10, 20] }, 'generate', '/versions/1'))).toMatchObject({
        TOTAL: [21, 42],
      });
    });

    it('text and truth go in and come out as they are', async () => {
      expect(jsonOf(await ask('identity_text', { X: 'zwei Wörter' }))).toMatchObject({ Y: 'zwei Wörter' });
      expect(jsonOf(await ask('identity_text', { X: ['a', ''] }))).toMatchObject({ Y: ['a', ''] });
      expect(jsonOf(await ask('identity_bool', { X: true }))).toMatchObject({ Y: true });
      expect(jsonOf(await ask('identity_int64', { X: [-5, 7] }))).toMatchObject({ Y: [-5, 7] });
    });

    it('fixed dimensions are filled first', async () => {
      expect(jsonOf(await ask('whole', { X: [1, 2, 3, 4] }))).toMatchObject({ Y: [1, 2, 3, 4] });
      const reply = await ask('whole', { X: [1, 2, 3] });
      expect(reply.status).toBe(400);
      expect(errorOf(reply)).toContain("can not convert input 'X' to tensor with proper shape");
    });

    it('returns the id; takes parameters inside `parameters` or beside it', async () => {
      const reply = await ask('add', { id: '42', A: 1, parameters: { B: 1, temperature: 0.5 }, stop: 'now' });
      expect(jsonOf(reply)).toMatchObject({ id: '42', SUM: 2 });
      expect(jsonOf(await ask('add', { id: '', A: 1, B: 1 }))).not.toHaveProperty('id');
    });

    it('a stream is one event', async () => {
      const reply = await ask('add', { A: 3, B: 4 }, 'generate_stream');
      expect(reply.status).toBe(200);
      expect(eventOf(reply)).toMatchObject({ model_name: 'add', SUM: 7 });
    });

    it('reports request errors in JSON, also for a stream', async () => {
      for (const kind of ['generate', 'generate_stream']) {
        const wrong = [
          [await ask('add', {}, kind), 'input'],
          [await ask('add', { A: 1 }, kind), 'input'],
        ] as const;
        for (const [reply, text] of wrong) {
          expect(reply.status).toBe(400);
          expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
          expect(errorOf(reply)).toContain(text);
        }
        expect((await ask('nobody', { A: 1 }, kind)).status).toBeGreaterThanOrEqual(400);
      }
    });

    differing(implementation, 'generateType', 'a value of another type is refused', async (status) => {
      const wrong = [
        await ask('add', { A: 1, B: 'text' }),
        await ask('identity_bool', { X: 1 }),
        await ask('identity_text', { X: 1 }),
        await ask('add', { A: 1, B: 1, parameters: 'text' }),
      ];
      expect(wrong.map((reply) => reply.status)).toEqual(wrong.map(() => status));
      for (const reply of wrong) expect(errorOf(reply)).not.toBe('');
    });

    it('a body that is no JSON is refused', async () => {
      const reply = await send(engine(), 'POST', '/v2/models/add/generate', 'hello');
      expect(reply.status).toBeGreaterThanOrEqual(400);
      expect(errorOf(reply)).not.toBe('');
    });

    const event = 'what the network says of a request is an event of its stream, with the status of the error';
    differing(implementation, 'generateFailure', event, async (status) => {
      // Three requests form a batch; the one with an index outside the table fails alone.
      const replies = await Promise.all([0, 7, 1].map((value) => ask('index', { X: value }, 'generate_stream')));
      expect(replies.map((reply) => reply.status)).toEqual([200, status, 200]);
      expect(replies.map(eventOf)).toMatchObject([{ Y: 10 }, { error: expect.any(String) }, { Y: 20 }]);
      const plain = await Promise.all([0, 7, 1].map((value) => ask('index', { X: value })));
      expect(plain.map((reply) => reply.status)).toEqual([200, status, 200]);
      expect(errorOf(plain[1]!)).not.toBe('');
    });

    differing(implementation, 'generateParameters', 'a sequence may be generated, too', async (expected) => {
      const reply = await ask('sequence_many', { X: 3, parameters: { sequence_id: 77, sequence_start: true } });
      expect(reply.status).toBe(expected === 'understood' ? 200 : 400);
      if (expected === 'ignored') return expect(errorOf(reply)).toContain('non-zero or non-empty correlation ID');
      expect(jsonOf(reply)).toMatchObject({ Y: 3 });
      const next = await ask('sequence_many', { X: 4, parameters: { sequence_id: 77, sequence_end: true } });
      expect(jsonOf(next)).toMatchObject({ Y: 97 });
    });
  });
