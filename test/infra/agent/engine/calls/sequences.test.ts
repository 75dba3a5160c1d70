import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type EngineStep,
  type FinalStep,
  SEQUENCE_STEPS_MAX,
  SEQUENCES_PER_TENANT_MAX,
  Sequences,
  type Step,
} from '../../../../../infra/pool/agent/engine/calls/sequences.ts';
import { fp32Tensor } from '../../../../../shared/kserve/tensor.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import { createFakeClock, settle } from '../../../../fake/clock.ts';

const inputs = [fp32Tensor('X', Float32Array.of(1, 2), [1, 2])];
const stepOf = (change: Partial<Step> = {}): Step => ({
  tenant: 'acme',
  model: 'm',
  engineModel: change.model ?? 'm',
  version: undefined,
  id: 7,
  start: false,
  end: false,
  inputs,
  ...change,
});

function make(idleMs = 1_000) {
  const clock = createFakeClock(0);
  const ended: FinalStep[] = [];
  const sequences = new Sequences({
    engineIdleMs: async () => idleMs,
    end: async (ending) => void ended.push(ending),
    after: clock.clock.after,
  });
  const told: EngineStep[] = [];
  const run = async (engine: EngineStep): Promise<Result<number>> => {
    told.push(engine);
    return ok(told.length);
  };
  return {
    clock,
    ended,
    sequences,
    told,
    run,
    step: (change: Partial<Step> = {}) => sequences.step(stepOf(change), run),
  };
}

const reasonOf = (result: Result<unknown>) => (result.ok ? 'ok' : result.refusal.reason);

describe('A5 one sequence of a caller', () => {
  it('needs a START, has one id at the engine, and ends with END', async () => {
    const { sequences, told, step } = make();
    expect(reasonOf(await step())).toBe('sequence_unknown');
    await step({ start: true });
    await step();
    await step({ end: true });
    expect(told.map(({ start, end }) => [start, end])).toEqual([
      [true, false],
      [false, false],
      [false, true],
    ]);
    expect(new Set(told.map(({ id }) => id)).size).toBe(1);
    expect(sequences.size).toBe(0);
    expect(reasonOf(await step())).toBe('sequence_unknown');
  });

  it('steps run one after the other, in the order they came', async () => {
    const { sequences } = make();
    const running: number[] = [];
    const releases: (() => void)[] = [];
    const slow = (n: number) => () =>
      new Promise<Result<number>>((resolve) => {
        running.push(n);
        releases.push(() => resolve(ok(n)));
      });
    const all = [0, 1, 2].map((n) => sequences.step(stepOf({ start: n === 0 }), slow(n)));
    for (let n = 0; n < 3; n++) {
      await settle();
      expect(running).toHaveLength(n + 1);
      releases[n]?.();
    }
    await Promise.all(all);
    expect(running).toEqual([0, 1, 2]);
  });

  it('more steps than may wait are refused, and the sequence goes on', async () => {
    const { sequences, step } = make();
    let release = () => {};
    const first = sequences.step(
      stepOf({ start: true }),
      () =>
        new Promise<Result<number>>((resolve) => {
          release = () => resolve(ok(0));
        }),
    );
    const waiting = Array.from({ length: SEQUENCE_STEPS_MAX }, () => step());
    const answers = Promise.all(waiting);
    await settle();
    release();
    await first;
    expect((await answers).map(reasonOf).filter((reason) => reason === 'pool_busy')).toHaveLength(1);
    expect(reasonOf(await step())).toBe('ok');
  });

  it('C4 a refused second START ends the sequence; steps of both are refused', async () => {
    const { clock, ended, sequences, told, step } = make(1_000);
    const open = { refusal: { reason: 'sequence_open', params: { sequence: 7, model: 'm' } } };
    await step({ start: true });
    expect(await step({ start: true })).toMatchObject(open);
    await clock.advance(799);
    for (const flags of [{}, { end: true }, { start: true }]) expect(await step(flags)).toMatchObject(open);
    expect(told).toHaveLength(1);
    expect(ended).toMatchObject([{ step: { id: told[0]?.id, start: false, end: true } }]);
    await clock.advance(1);
    expect(sequences.size).toBe(0);
    expect(reasonOf(await step())).toBe('sequence_unknown');
    expect(reasonOf(await step({ start: true }))).toBe('ok');
    expect(told[1]?.id).not.toBe(told[0]?.id);
  });

  it('C4 a step that waits is refused when a second START comes', async () => {
    const { clock, ended, sequences, step } = make();
    let release = () => {};
    const first = sequences.step(
      stepOf({ start: true }),
      () =>
        new Promise<Result<number>>((resolve) => {
          release = () => resolve(ok(0));
        }),
    );
    const waiting = step();
    await settle();
    const second = step({ start: true });
    release();
    const answers = await Promise.all([first, waiting, second]);
    expect(answers.map(reasonOf)).toEqual(['ok', 'sequence_open', 'sequence_open']);
    await sequences.close();
    expect(ended).toHaveLength(1);
    expect(clock.timers()).toBe(0);
  });

  it('a START of an open sequence in a named session restarts it', async () => {
    const session = 'a process';
    const { ended, told, step } = make();
    await step({ session, start: true });
    await step({ session, start: true });
    await settle();
    expect(new Set(told.map(({ id }) => id)).size).toBe(2);
    expect(ended).toMatchObject([{ step: { id: told[0]?.id, start: false, end: true } }]);
    expect(reasonOf(await step({ session }))).toBe('ok');
    expect(told.at(-1)?.id).toBe(told[1]?.id);
  });

  it('steps queued behind a START of their sequence find the old one lost', async () => {
    const session = 'a process';
    const { sequences, step } = make();
    let release = () => {};
    const first = sequences.step(
      stepOf({ session, start: true }),
      () =>
        new Promise<Result<number>>((resolve) => {
          release = () => resolve(ok(0));
        }),
    );
    const old = step({ session });
    const again = step({ session, start: true });
    release();
    await first;
    expect([reasonOf(await old), reasonOf(await again)]).toEqual(['sequence_unknown', 'ok']);
  });
});

describe('A5 a caller that vanishes', () => {
  it('is ended before the engine’s timeout, with zeros shaped as its last step', async () => {
    const { clock, ended, sequences, told, step } = make(1_000);
    await step({ start: true });
    await clock.advance(700);
    await step();
    await clock.advance(700);
    expect(ended).toEqual([]);
    await clock.advance(100);
    expect(ended).toEqual([
      {
        model: 'm',
        version: undefined,
        inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 2], bytes: new Uint8Array(8) }],
        step: { id: told[0]?.id, start: false, end: true },
      },
    ]);
    expect(sequences.size).toBe(0);
    expect(clock.timers()).toBe(0);
  });

  it('texts end as empty ones', async () => {
    const { clock, ended, step } = make();
    const bytes = new TextEncoder().encode('\u0002\0\0\0hi\u0001\0\0\0x');
    await step({ start: true, inputs: [{ name: 'T', datatype: 'BYTES', shape: [2], bytes }] });
    await clock.advance(1_000);
    expect(ended[0]?.inputs[0]?.bytes).toEqual(new Uint8Array(8));
  });

  it('close ends every open sequence, and none that has ended', async () => {
    const { ended, sequences, step } = make();
    await step({ start: true, id: 1 });
    await step({ start: true, end: true, id: 2 });
    await step({ start: true, id: 'three' });
    await sequences.close();
    expect(ended.map(({ step: { id } }) => typeof id)).toEqual(['number', 'string']);
    expect(sequences.size).toBe(0);
  });
});

describe('A5 a step that goes wrong', () => {
  const failing = (reason: Parameters<typeof refuse>[0]) => async () => no(refuse(reason));

  it('because of the request leaves the sequence as it was', async () => {
    const { ended, sequences, step } = make();
    await step({ start: true });
    expect(reasonOf(await sequences.step(stepOf(), failing('tensors_invalid')))).toBe('tensors_invalid');
    expect(reasonOf(await step())).toBe('ok');
    expect(ended).toEqual([]);
  });

  it('because of the request, and was to start it: there is none', async () => {
    const { ended, sequences, step } = make();
    await sequences.step(stepOf({ start: true }), failing('tensors_invalid'));
    expect(reasonOf(await step())).toBe('sequence_unknown');
    await settle();
    expect(ended).toEqual([]);
  });

  it.each(['engine_failed', 'deadline_passed', 'pool_busy'] as const)(
    'after %s its state is unknown: it ends, and queued steps are lost',
    async (reason) => {
      const { ended, sequences, step } = make();
      await step({ start: true });
      const failed = sequences.step(stepOf(), failing(reason));
      const behind = step();
      expect([reasonOf(await failed), reasonOf(await behind)]).toEqual([reason, 'sequence_unknown']);
      await settle();
      expect(ended).toHaveLength(1);
    },
  );

  it('because the engine does not have it: nothing is sent', async () => {
    const { ended, sequences, step } = make();
    await step({ start: true });
    await sequences.step(stepOf(), failing('sequence_unknown'));
    await settle();
    expect(ended).toEqual([]);
    expect(reasonOf(await step())).toBe('sequence_unknown');
  });
});

describe('C4 sequences of different callers', () => {
  it('never share an id at the engine, whatever their ids, subjects, sessions and models', () =>
    fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(
          fc.record({
            tenant: fc.constantFrom('a', 'b'),
            caller: fc.constantFrom(undefined, 'alice', 'bob'),
            session: fc.constantFrom(undefined, 'one', 'two'),
            model: fc.constantFrom('m', 'n'),
            id: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constantFrom('1', '2', 'x\nm', 'x')),
          }),
          {
            selector: ({ tenant, caller, session, model, id }) =>
              JSON.stringify([tenant, caller ?? '', session ?? '', model, typeof id, id]),
          },
        ),
        async (callers) => {
          const { sequences, told, step } = make();
          for (const caller of callers) await step({ ...caller, start: true });
          expect(new Set(told.map(({ id }) => id)).size).toBe(callers.length);
          expect(sequences.size).toBe(callers.length);
          for (const caller of callers) expect(reasonOf(await step({ ...caller, end: true }))).toBe('ok');
          expect(told.slice(callers.length).map(({ id }) => id)).toEqual(
            told.slice(0, callers.length).map(({ id }) => id),
          );
        },
      ),
    ));

  it('A16 a step of another revision is unknown, in the caller’s words', async () => {
    const { ended, step } = make();
    await step({ engineModel: 'm.aaaaaaaaaaaa', start: true });
    const other = await step({ engineModel: 'm.bbbbbbbbbbbb' });
    expect(other).toMatchObject({ refusal: { reason: 'sequence_unknown', params: { sequence: 7, model: 'm' } } });
    expect(reasonOf(await step({ engineModel: 'm.aaaaaaaaaaaa', end: true }))).toBe('ok');
    expect(ended).toEqual([]);
  });

  it('no tenant takes all places', async () => {
    const { step } = make();
    const most = SEQUENCES_PER_TENANT_MAX;
    for (let id = 1; id <= most; id++) await step({ id, start: true });
    expect(reasonOf(await step({ id: most + 1, start: true }))).toBe('pool_busy');
    expect(reasonOf(await step({ tenant: 'other', start: true }))).toBe('ok');
    expect(reasonOf(await step({ id: 1 }))).toBe('ok');
  });

  it('for any calls, the engine sees START first and nothing after END, per id', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            id: fc.integer({ min: 1, max: 3 }),
            start: fc.boolean(),
            end: fc.boolean(),
            session: fc.constantFrom(undefined, 'one'),
            outcome: fc.constantFrom('ok', 'ok', 'ok', 'tensors_invalid', 'engine_failed', 'sequence_unknown'),
            pause: fc.constantFrom(0, 0, 500, 900),
          }),
          { maxLength: 40 },
        ),
        async (steps) => {
          const log: EngineStep[] = [];
          const clock = createFakeClock(0);
          const sequences = new Sequences({
            engineIdleMs: async () => 1_000,
            end: async ({ step }) => void log.push(step),
            after: clock.clock.after,
          });
          for (const { outcome, pause, ...step } of steps) {
            await sequences.step(stepOf(step), async (engine) => {
              // An engine that refuses a request for what it is has not taken the step.
              if (outcome === 'ok' || outcome === 'engine_failed') log.push(engine);
              return outcome === 'ok' ? ok(0) : no(refuse(outcome as 'engine_failed'));
            });
            await clock.advance(pause);
          }
          await sequences.close();
          const open = new Set<unknown>();
          const over = new Set<unknown>();
          for (const { id, start, end } of log) {
            expect(start).toBe(!open.has(id));
            // An END of ours after one that failed on its own END changes nothing at the engine.
            if (over.has(id)) expect([start, end]).toEqual([false, true]);
            open.add(id);
            if (end) over.add(id);
          }
          expect([...open].filter((id) => !over.has(id))).toEqual(lost(log));
        },
      ),
      { numRuns: 300 },
    ));
});

/** Returns ids that the engine reported missing: they need no end. */
function lost(log: readonly EngineStep[]): unknown[] {
  const ended = new Set(log.filter(({ end }) => end).map(({ id }) => id));
  return [...new Set(log.map(({ id }) => id))].filter((id) => !ended.has(id));
}
