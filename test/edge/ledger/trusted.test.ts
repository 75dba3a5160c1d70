import { describe, expect, it } from 'vitest';
import { realRuntime } from '../../../edge/clock.ts';
import { Backlog, STRAINED_EVENTS, STRAINED_MS } from '../../../edge/ledger/backlog.ts';
import { createEvent } from '../../../edge/ledger/create-event.ts';
import { transcribe } from '../../../edge/transcribe/transcribe.ts';
import { startAgent } from '../../fake/network.ts';
import { makeContext, makeUpload } from '../../fake/request-context.ts';
import type { FakeGate } from '../gate-steps.ts';

const unique = () => crypto.randomUUID().slice(0, 8);
const gone = () => Promise.reject(new Error('gone'));
const broken: FakeGate = { take: gone, settle: gone, record: gone };
const answering: FakeGate = {
  take: async () => ({ ok: true, value: undefined }) as never,
  settle: async () => {},
  record: async () => {},
};

async function send(claims: Record<string, unknown>, gate: FakeGate) {
  const model = `model-${unique()}`;
  const agent = await startAgent(model);
  const { context, settled } = makeContext(gate, realRuntime);
  const answer = await transcribe(await makeUpload(model, claims), context);
  await answer.text();
  await settled();
  return { answer, agent };
}

describe('C9 a buffered tenant is served on trust, within bounds', () => {
  it('strictly once its backlog is full, until the gate answers again', async () => {
    const claims = { tenant: `t-${unique()}` };
    expect((await send(claims, broken)).answer.status).toBe(200);
    const { recorder } = makeContext(broken, realRuntime).context;
    const gap = createEvent({ type: 'gap', lost: 0, from: 0, to: 0 }, 1);
    const events = Array.from({ length: STRAINED_EVENTS }, () => gap);
    await recorder.append({ ...claims, zones: ['eu'] }, { kind: 'record', events });
    const refused = await send(claims, broken);
    expect([refused.answer.status, refused.agent.requests]).toEqual([503, 0]);
    expect((await send(claims, answering)).answer.status).toBe(200);
    expect((await send(claims, broken)).answer.status).toBe(200);
  });

  it('strictly once the backlog is full; age counts from the first kept event', () => {
    const backlog = new Backlog();
    const gap = createEvent({ type: 'gap', lost: 0, from: 0, to: 0 }, 1);
    const step = (count: number) => ({ kind: 'record', events: Array.from({ length: count }, () => gap) }) as const;
    backlog.keep('t/eu', [step(STRAINED_EVENTS)], 1_000);
    expect(backlog.isStrained('t/eu', 1_000)).toBe(false);
    backlog.keep('t/eu', [step(1)], 1_000);
    expect(backlog.isStrained('t/eu', 1_000)).toBe(true);
    expect(backlog.isStrained('other/eu', 1_000)).toBe(false);
    backlog.take('t/eu');
    backlog.keep('t/eu', [step(1)], 200_000);
    expect(backlog.isStrained('t/eu', 1_000 + STRAINED_MS)).toBe(false);
    expect(backlog.isStrained('t/eu', 1_001 + STRAINED_MS)).toBe(true);
    backlog.take('t/eu');
    backlog.delivered('t/eu');
    expect(backlog.isStrained('t/eu', 1_001 + STRAINED_MS)).toBe(false);
  });
});
