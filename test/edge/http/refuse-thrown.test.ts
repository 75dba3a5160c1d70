import { describe, expect, it, vi } from 'vitest';
import { type Runtime, realRuntime } from '../../../edge/clock.ts';
import { transcribe } from '../../../edge/transcribe/transcribe.ts';
import type { AuditEvent } from '../../../shared/audit/event.ts';
import { ANSWER_SILENCE_MS } from '../../../shared/pool/limits.ts';
import { final, segment } from '../../fake/agent.ts';
import { readRefusal, startAgent } from '../../fake/network.ts';
import { makeContext, makeUpload } from '../../fake/request-context.ts';
import { makeSettings } from '../../fake/settings.ts';

const unique = () => crypto.randomUUID().slice(0, 8);

/** A key that only looks like one: tickets cannot be signed with it. */
const broken = makeSettings({ TICKET_KEY: '{"kty":"EC","crv":"P-256","x":"AA","y":"AA","d":"AA"}' });

/** A gate that notes what it was told. */
function makeGate() {
  const settled: { id: string; statuses: number[] }[] = [];
  const gate = {
    take: async () => ({ ok: true, value: undefined }) as const,
    settle: async (id: string, _seconds: number, events: readonly AuditEvent[]) => {
      const statuses = events.flatMap((event) => (event.type === 'inference.complete' ? [event.status] : []));
      settled.push({ id, statuses });
    },
    record: async () => {},
  };
  return { gate, settled };
}

describe('A1 A21 a bug ends a request as any failure does', () => {
  it.each(['strict', 'buffered'])(
    'while signing: 500, one end in the record, the place comes back (%s)',
    async (audit) => {
      vi.spyOn(console, 'error').mockImplementation(() => {});
      const model = `model-${unique()}`;
      const agent = await startAgent(model);
      const { gate, settled } = makeGate();
      const { context, settled: done } = makeContext(gate, realRuntime, broken);
      const answer = await transcribe(await makeUpload(model, { tenant: `t-${unique()}`, audit }), context);
      expect(await readRefusal(answer)).toEqual({
        status: 500,
        code: 'internal',
        message: 'An internal error occurred. It is logged under the request id.',
      });
      await done();
      expect(settled).toEqual([{ id: context.id, statuses: [500] }]);
      expect(agent.requests).toBe(0);
    },
  );

  it.each(['true', 'false'])('in the middle of the answer: an error frame in a stream (stream=%s)', async (stream) => {
    const noted = vi.spyOn(console, 'error').mockImplementation(() => {});
    const model = `model-${unique()}`;
    const agent = await startAgent(model);
    let throws = false;
    const runtime: Runtime = {
      ...realRuntime,
      after: (ms) => {
        if (throws && ms === ANSWER_SILENCE_MS) throw new Error('a secret in a message');
        return realRuntime.after(ms);
      },
    };
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'form', fields: { model: [model], stream: [stream] } };
      yield segment(0, 'hello there');
      throws = true;
      yield { type: 'keepalive' };
      yield final(1);
    };
    const { gate, settled } = makeGate();
    const { context, settled: done } = makeContext(gate, runtime);
    const answer = await transcribe(await makeUpload(model, { tenant: `t-${unique()}`, audit: 'strict' }), context);
    const text = await answer.text();
    expect(answer.status).toBe(stream === 'true' ? 200 : 500);
    expect(text.startsWith('data: {"type":"transcript.text.delta"')).toBe(stream === 'true');
    expect(text).toContain('"code":"internal"');
    expect(text).not.toContain('[DONE]');
    await done();
    expect(settled).toEqual([{ id: context.id, statuses: [500] }]);
    const log = noted.mock.calls.flat().join('\n');
    expect(log).toContain(context.id);
    expect(log).not.toContain('secret');
  });
});
