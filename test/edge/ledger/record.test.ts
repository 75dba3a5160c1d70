import { describe, expect, it } from 'vitest';
import { type Alarm, late, type Runtime, realRuntime } from '../../../edge/clock.ts';
import type { GateAnswer, GateStep } from '../../../edge/ledger/gate-step.ts';
import { GATE_DELAY_MS, GATE_REPORT_MS, GATE_STEPS_MAX, Recorder } from '../../../edge/ledger/record.ts';
import type { Bindings } from '../../../edge/settings.ts';
import { ok } from '../../../shared/result.ts';

const owner = () => ({ tenant: `t-${crypto.randomUUID()}`, zones: ['eu'] });
const settle = (id: string): GateStep => ({ kind: 'settle', id, mode: 'buffered', audioSeconds: 1, events: [] });
const renew = (id: string): GateStep => ({ kind: 'renew', id, events: [] });
const namesOf = (steps: readonly GateStep[]) =>
  steps.map((step) => `${step.kind} ${'id' in step ? step.id : ''}`.trim());

/** A recorder whose lingering ends when the test says so. */
function makeRecorder(apply: (steps: readonly GateStep[]) => Promise<GateAnswer[]>) {
  const calls: string[][] = [];
  const work: Promise<unknown>[] = [];
  let endLinger = () => {};
  const lingers = new Promise<typeof late>((resolve) => {
    endLinger = () => resolve(late);
  });
  const after = (ms: number): Alarm =>
    ms === GATE_DELAY_MS ? { rings: lingers, cancel: () => {} } : realRuntime.after(ms);
  const runtime: Runtime = { ...realRuntime, after };
  const gate = {
    apply: (steps: readonly GateStep[]) => {
      calls.push(namesOf(steps));
      return apply(steps);
    },
  };
  const gates = { getByName: () => gate } as unknown as Bindings['GATE'];
  const recorder = new Recorder({
    ...{ gates, zones: ['eu'], waitMs: 250, runtime },
    waitUntil: (one) => void work.push(one),
  });
  return { recorder, calls, endLinger, settled: () => Promise.all(work) };
}

const agree = async (steps: readonly GateStep[]) => steps.map(() => ok(undefined));

describe('A21 a gate that answers late', () => {
  it.each([250, 5_000])('is waited for as long as the settings say: %i ms', async (waitMs) => {
    const waits: number[] = [];
    const runtime: Runtime = {
      ...realRuntime,
      after: (ms) => {
        waits.push(ms);
        return { rings: new Promise(() => {}), cancel: () => {} };
      },
    };
    const gates = { getByName: () => ({ apply: agree, quota: async () => undefined }) } as unknown as Bindings['GATE'];
    const recorder = new Recorder({ gates, zones: ['eu'], waitMs, runtime, waitUntil: () => {} });
    expect(await recorder.append(owner(), renew('a'))).toBe(true);
    expect(await recorder.readQuota(owner(), { allowance: {} })).toBeUndefined();
    expect(waits).toEqual([waitMs, waitMs]);
  });

  it.each([250, 5_000])('gets a second report after twice the wait: %i ms', async (waitMs) => {
    let now = 0;
    const [calls, work]: [number[], Promise<unknown>[]] = [[], []];
    const silent = { rings: new Promise<typeof late>(() => {}), cancel: () => {} };
    const after = (ms: number): Alarm => {
      if (ms !== GATE_REPORT_MS) return silent;
      now += ms;
      return { rings: Promise.resolve(late), cancel: () => {} };
    };
    const secondCall = Promise.withResolvers<void>();
    const apply = () => {
      if (calls.push(now) === 2) secondCall.resolve();
      return new Promise(() => {});
    };
    const recorder = new Recorder({
      gates: { getByName: () => ({ apply }) } as unknown as Bindings['GATE'],
      ...{ zones: ['eu'], waitMs, runtime: { ...realRuntime, now: () => now, after } },
      waitUntil: (one) => void work.push(one),
    });
    const own = owner();
    const ask = { id: 'x', work: { tenant: own.tenant, action: 'transcribe' }, allowance: {} };
    void recorder.take(own, { kind: 'take', ask, mode: 'buffered', events: [] }, async () => {});
    const draft = { type: 'inference.complete', ...ask.work, request: 'y', status: 200 } as const;
    recorder.leave(own, 'y', 1, { notes: [], end: { draft, at: 0 } });
    await secondCall.promise;
    expect(calls).toEqual([0, 2 * waitMs]);
  });
});

describe('C4 A1 buffered steps', () => {
  it('go along with the next call to their gate, before it', async () => {
    const { recorder, calls, endLinger, settled } = makeRecorder(agree);
    const own = owner();
    recorder.appendEventually(own, settle('a'));
    recorder.appendEventually(own, settle('b'));
    expect(calls).toEqual([]);
    expect(await recorder.send(own, renew('c'))).toEqual(ok(undefined));
    endLinger();
    await settled();
    expect(calls).toEqual([['settle a', 'settle b', 'renew c']]);
  });

  it('go by themselves when no call comes', async () => {
    const { recorder, calls, endLinger, settled } = makeRecorder(agree);
    recorder.appendEventually(owner(), settle('a'));
    endLinger();
    await settled();
    expect(calls).toEqual([['settle a']]);
  });

  it('never go along to the gate of another tenant', async () => {
    const { recorder, calls, endLinger, settled } = makeRecorder(agree);
    recorder.appendEventually(owner(), settle('a'));
    await recorder.send(owner(), renew('c'));
    expect(calls).toEqual([['renew c']]);
    endLinger();
    await settled();
    expect(calls).toEqual([['renew c'], ['settle a']]);
  });

  it('are not held beyond their bound', async () => {
    const { recorder, calls, endLinger, settled } = makeRecorder(agree);
    const own = owner();
    for (let n = 0; n <= GATE_STEPS_MAX; n += 1) recorder.appendEventually(own, settle(`${n}`));
    expect(calls).toHaveLength(1);
    expect(calls[0]).toHaveLength(GATE_STEPS_MAX + 1);
    endLinger();
    await settled();
  });

  it('a caller gets the answer to its own step, whatever went along', async () => {
    const { recorder, endLinger, settled } = makeRecorder(async (steps) =>
      steps.map((step) =>
        step.kind === 'take' ? { ok: false, refusal: { reason: 'allowance_concurrent' } } : ok(undefined),
      ),
    );
    const own = owner();
    recorder.appendEventually(own, settle('a'));
    const ask = { id: 'x', work: { tenant: 't', action: 'transcribe' }, allowance: {} };
    const answer = await recorder.send(own, { kind: 'take', ask, mode: 'buffered', events: [] });
    expect(answer).toMatchObject({ ok: false, refusal: { reason: 'allowance_concurrent' } });
    endLinger();
    await settled();
  });

  it('are repeated by the next call when the one they went with failed', async () => {
    let broken = true;
    const received: GateStep[] = [];
    const { recorder, endLinger, settled } = makeRecorder(async (steps) => {
      if (broken) throw new Error('gone');
      received.push(...steps);
      return agree(steps);
    });
    const own = owner();
    const event = recorder.mint({ type: 'gap', lost: 1, from: 1, to: 1 });
    const end: GateStep = { kind: 'settle', id: 'a', mode: 'buffered', audioSeconds: 1, events: [event] };
    recorder.appendEventually(own, end);
    await expect(recorder.send(own, renew('c'))).rejects.toThrow('gone');
    endLinger();
    await settled();
    broken = false;
    await recorder.send(own, renew('d'));
    await settled();
    // The settle releases the slot and books the seconds; a slot is not renewed late.
    expect(received).toEqual([end, renew('d')]);
  });
});
