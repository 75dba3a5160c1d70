// A Durable Object whose disk is full: the refusal has the reason.
import { describe, expect, it } from 'vitest';
import { realRuntime } from '../../../edge/clock.ts';
import { refuseThrown } from '../../../edge/http/refuse-thrown.ts';
import type { GateAnswer } from '../../../edge/ledger/gate-step.ts';
import { Recorder } from '../../../edge/ledger/record.ts';
import { publicText } from '../../../shared/refusal.ts';

/** Message of workerd. */
const FULL = 'database or disk is full: SQLITE_FULL';

function recorderOf(apply: (gate: string) => Promise<GateAnswer[]>): Recorder {
  const gates = { getByName: (gate: string) => ({ apply: () => apply(gate) }) } as never;
  const waitUntil = (work: Promise<unknown>) => void work.catch(() => {});
  return new Recorder({ gates, zones: ['eu'], waitMs: 1_000, runtime: realRuntime, waitUntil });
}

describe('A8 C9: a full disk below a gate', () => {
  const owner = { tenant: `full-${crypto.randomUUID()}`, zones: ['eu'] };
  const step = { kind: 'record', events: [] } as const;

  it('refuses with storage_full until a write succeeds', async () => {
    let answer = (): Promise<GateAnswer[]> => Promise.reject(new Error('unreachable'));
    const recorder = recorderOf(() => answer());
    const reason = async () => {
      await recorder.send(owner, step).catch(() => {});
      return recorder.refusal(owner, 'not recorded').reason;
    };
    expect(await reason()).toBe('audit_unavailable');
    answer = () => Promise.reject(new Error(FULL));
    expect(await reason()).toBe('storage_full');
    // The object was reset: its next errors do not say why.
    answer = () => Promise.reject(new Error('internal error; reference = x'));
    expect(await reason()).toBe('storage_full');
    answer = async () => [{ ok: true, value: undefined } as unknown as GateAnswer];
    await recorder.send(owner, step);
    expect(recorder.refusal(owner, 'x').reason).toBe('audit_unavailable');
  });

  it('concerns no other gate, and outlasts a write to one', async () => {
    const other = { tenant: `other-${crypto.randomUUID()}`, zones: ['eu'] };
    let answer = (): Promise<GateAnswer[]> => Promise.reject(new Error('unreachable'));
    const recorder = recorderOf((gate) => (gate.startsWith('full-') ? Promise.reject(new Error(FULL)) : answer()));
    const reasons = async () => {
      for (const one of [owner, other]) await recorder.send(one, step).catch(() => {});
      return [owner, other].map((one) => recorder.refusal(one, 'not recorded').reason);
    };
    expect(await reasons()).toEqual(['storage_full', 'audit_unavailable']);
    answer = async () => [{ ok: true, value: undefined } as unknown as GateAnswer];
    expect(await reasons()).toEqual(['storage_full', 'audit_unavailable']);
  });

  it('is no bug where it is thrown', () => {
    const refusal = refuseThrown('r1', new Error(FULL));
    expect(refusal.reason).toBe('storage_full');
    expect(publicText(refusal)).toBe('Storage is full, so the request was not served. Full: the storage of the edge.');
    expect(refuseThrown('r1', new Error('other')).reason).toBe('internal');
  });
});
