import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { realRuntime } from '../../../edge/clock.ts';
import type { RequestContext } from '../../../edge/context.ts';
import { createEvent } from '../../../edge/ledger/create-event.ts';
import type { GateAnswer, GateStep } from '../../../edge/ledger/gate-step.ts';
import { AUDIT_EVENT_BYTES, OUTBOX_ROW_EVENTS_MAX, Outbox } from '../../../edge/ledger/outbox.ts';
import { Recorder } from '../../../edge/ledger/record.ts';
import { RESERVE_MS } from '../../../edge/ledger/reserve.ts';
import { type ReportStep, Reserves } from '../../../edge/ledger/reserves.ts';
import { AUDIO_PER_DAY_S } from '../../../edge/limits.ts';
import type { Bindings } from '../../../edge/settings.ts';
import { AUDIT_WAIT_DEFAULT_MS } from '../../../edge/settings-schema.ts';
import { transcribe } from '../../../edge/transcribe/transcribe.ts';
import type { AuditEvent } from '../../../shared/audit/event.ts';
import { ok } from '../../../shared/result.ts';
import { startAgent } from '../../fake/network.ts';
import { makeContext, makeUpload } from '../../fake/request-context.ts';
import { take } from '../gate-steps.ts';

const unique = () => crypto.randomUUID().slice(0, 8);
const freshGate = () => env.GATE.getByName(`tenant-${crypto.randomUUID()}/eu`);
const allowance = { requestsAtOnce: 64, requestsPerMinute: 640 };
const work = { tenant: 't', action: 'transcribe' };
const opening = { fields: { ...work, request: 'r' }, at: 0 };
const denial = (subject: string, detail = ''): AuditEvent =>
  createEvent({ type: 'inference.denied', request: 'r', action: 'a', reason: 'x', subject, detail }, Date.now());

const makeRecorder = (gate: unknown, waitUntil: RequestContext['waitUntil']) =>
  new Recorder({
    gates: { getByName: () => gate } as unknown as Bindings['GATE'],
    ...{ zones: ['eu'], waitMs: AUDIT_WAIT_DEFAULT_MS, runtime: realRuntime, waitUntil },
  });

/** A report of an isolate that did these things. */
function reportOf(did: (reserves: Reserves) => void): ReportStep {
  const reserves = new Reserves();
  reserves.enterSingle('g', allowance);
  did(reserves);
  return reserves.report('g', Date.now(), true) as ReportStep;
}
const rowsOf = async (gate: ReturnType<typeof freshGate>) =>
  (await gate.outbox(0, 100)).rows.map(({ event }) => event as AuditEvent & { subject?: string; detail?: string });

describe('A1 C4 a report to the gate', () => {
  it('returns the isolate’s quota, and holds it against others', async () => {
    const gate = freshGate();
    const [answer] = await gate.apply([reportOf(() => {})]);
    expect(answer).toMatchObject(ok({ places: 2, starts: 8, seconds: AUDIO_PER_DAY_S }));
    const few = { requestsAtOnce: 3 };
    expect((await take(gate, { id: 'one', work, allowance: few }, 'buffered', [])).ok).toBe(true);
    expect(await take(gate, { id: 'two', work, allowance: few }, 'buffered', [])).toMatchObject({ ok: false });
  });

  it('R14 hides subjects, whatever their characters, and only them', async () => {
    const gate = freshGate();
    const odd = 'al"ice $& \\ "subject":"bob"';
    const step = reportOf((reserves) => {
      reserves.note('g', [
        denial('bob'),
        denial(odd, 'said "subject":"bob" and \\"subject\\":\\"bob\\"'),
        denial('bob'),
      ]);
    });
    await gate.apply([step]);
    await gate.apply([{ kind: 'record', events: [denial('bob'), denial(odd)] }]);
    const rows = await rowsOf(gate);
    expect(rows.map(({ subject }) => subject)).toEqual([
      rows[3]?.subject,
      rows[4]?.subject,
      rows[3]?.subject,
      expect.stringMatching(/^c1:[0-9a-f]{64}$/),
      expect.stringMatching(/^c1:[0-9a-f]{64}$/),
    ]);
    expect(rows[3]?.subject).not.toBe(rows[4]?.subject);
    expect(rows[1]?.detail).toBe('said "subject":"bob" and \\"subject\\":\\"bob\\"');
  });

  it('R14 replaces an event that is too long for a leaf by its digest', async () => {
    const gate = freshGate();
    const step = reportOf((reserves) => {
      reserves.note('g', [denial('bob', 'x'.repeat(AUDIT_EVENT_BYTES)), denial('bob')]);
    });
    await gate.apply([step]);
    expect((await rowsOf(gate)).map((event) => 'oversize' in event)).toEqual([true, false]);
  });

  it('R14 delivers many events as rows of bounded size', async () => {
    const gate = freshGate();
    const step = reportOf((reserves) => {
      for (let n = 0; n < 2 * OUTBOX_ROW_EVENTS_MAX + 1; n += 1) reserves.note('g', [denial('bob')]);
    });
    await gate.apply([step]);
    await rowsOf(gate);
    const sent = await runInDurableObject(gate, (_, { storage }) => new Outbox(storage.sql).rows(0, 10, 1e6)?.json);
    const deliveries = JSON.parse(`[${sent}]`) as { to: number; events: unknown[] }[];
    const value = OUTBOX_ROW_EVENTS_MAX;
    expect(deliveries.map(({ to, events }) => [to, events.length])).toEqual([
      [value, value],
      [2 * value, value],
      [2 * value + 1, 1],
    ]);
  });

  it('are written once although the report repeats', async () => {
    const gate = freshGate();
    const step = reportOf((reserves) => reserves.note('g', [denial('bob')]));
    await gate.apply([step, step]);
    expect(await rowsOf(gate)).toHaveLength(1);
  });
});

describe('A1 A2 C6 requests of a buffered tenant', () => {
  it('ask the gate for quota once; later requests use it, and all are recorded', async () => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    await startAgent(model);
    const steps: GateStep[] = [];
    const real = freshGate();
    const calls: number[] = [];
    const gate = {
      apply: async (given: readonly GateStep[]): Promise<GateAnswer[]> => {
        calls.push(given.length);
        steps.push(...given);
        return real.apply(given);
      },
    };
    const ids: string[] = [];
    for (let n = 0; n < 6; n += 1) {
      const { context, settled } = makeContext({}, realRuntime);
      const own = { ...context, recorder: makeRecorder(gate, context.waitUntil) };
      ids.push(context.id);
      const answer = await transcribe(await makeUpload(model, { tenant, allowance }), own);
      expect(answer.status).toBe(200);
      await answer.text();
      await settled();
    }
    expect(steps.filter(({ kind }) => kind === 'take')).toHaveLength(1);
    const rows = await rowsOf(real);
    for (const id of ids) {
      const own = rows.filter((event) => 'request' in event && event.request === id).map(({ type }) => type);
      expect(own).toEqual(['inference.attempt', 'route', 'inference.complete']);
    }
  });

  it('are refused, and recorded, when the gate says so: what is held runs out', async () => {
    const reserves = new Reserves();
    reserves.enterSingle('g', allowance);
    const step = reserves.report('g', 0, true) as ReportStep;
    reserves.onAnswer('g', step, { places: 2, starts: 3, seconds: 10 }, 50);
    const enter = (id: string, now = 60) => reserves.enter('g', { id, attempt: opening, allowance }, now);
    expect([enter('a'), enter('b'), enter('c')]).toEqual([true, true, false]);
    reserves.leave('g', 'a', 1);
    expect([enter('d'), enter('e')]).toEqual([true, false]);
    reserves.leave('g', 'b', 1);
    expect(enter('f')).toBe(false);
  });

  it('hold nothing past its time, nor past the day\u2019s seconds', () => {
    const hold = () => {
      const reserves = new Reserves();
      reserves.enterSingle('g', allowance);
      const step = reserves.report('g', 1_000, true) as ReportStep;
      reserves.onAnswer('g', step, { places: 2, starts: 9, seconds: 10 }, 1_200);
      return reserves;
    };
    // Counted from when it was asked for: the gate counts from later on.
    expect(hold().enter('g', { id: 'a', attempt: opening, allowance }, 1_000 + RESERVE_MS - 1)).toBe(true);
    expect(hold().enter('g', { id: 'a', attempt: opening, allowance }, 1_000 + RESERVE_MS)).toBe(false);
    const used = hold();
    used.enter('g', { id: 'a', attempt: opening, allowance }, 1_300);
    used.leave('g', 'a', 10);
    expect(used.enter('g', { id: 'b', attempt: opening, allowance }, 1_300)).toBe(false);
  });
});
