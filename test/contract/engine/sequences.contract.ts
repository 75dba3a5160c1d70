import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  askInfer,
  batchCounts,
  errorOf,
  eventually,
  floats,
  infer,
  load,
  type Reply,
  readReply,
  row,
  statistics,
  unload,
  untilPending,
  untilState,
} from './client.ts';
import { type Contract, differing, type Running } from './implementation.ts';
import { fold, sequenceModels } from './sequence-models.ts';

interface Flags {
  readonly start?: boolean;
  readonly end?: boolean;
  readonly signal?: AbortSignal;
}
type Id = number | string;

const START: Flags = { start: true };
const END: Flags = { end: true };
const ONLY: Flags = { start: true, end: true };

const parametersOf = (sequence_id: Id | undefined, { start, end }: Flags) => ({
  ...(sequence_id !== undefined && { sequence_id }),
  ...(start && { sequence_start: true }),
  ...(end && { sequence_end: true }),
});

const wide = ['A5', 'sequence_wide'];
const tensor = (model: string, value: number) => row('X', ...new Array(wide.includes(model) ? 512 : 1).fill(value));

/** Sends one request of a sequence and returns the raw answer. */
function ask(engine: Running, model: string, id: Id | undefined, value: number, flags: Flags = {}): Promise<Reply> {
  const { signal } = flags;
  const given = { parameters: parametersOf(id, flags), ...(signal && { signal }) };
  return askInfer(engine, model, [tensor(model, value)], given);
}

/** Sends one request and returns the state of the sequence after it. */
async function tell(engine: Running, model: string, id: Id, value: number, flags: Flags = {}): Promise<number> {
  return readValue(await ask(engine, model, id, value, flags));
}

function readValue(reply: Reply): number {
  const values = floats(readReply(reply), 'Y');
  expect(new Set(values).size, 'every value of the state goes the same way').toBe(1);
  return values[0]!;
}

const folded = (...values: number[]): number => values.reduce(fold, 0);

function expectUnknown(reply: Reply, id: Id, model: string): void {
  expect(reply.status).toBe(400);
  expect(errorOf(reply)).toContain(
    `inference request for sequence ${id} to model '${model}' must specify the START flag`,
  );
}

let last = 1000;
const fresh = (): number => ++last;

export const sequencesContract: Contract = (implementation, engine) =>
  describe('A5: sequences', () => {
    it('keeps FP32[512] of implicit state from the START to the END', async () => {
      // A machine that stalls for a second expires the sequence, which is correct: the sequence is sent
      // again.
      const replies = await eventually(
        async () => {
          const id = fresh();
          const steps = [START, {}, {}, END];
          const told: Reply[] = [];
          for (const [step, flags] of steps.entries()) told.push(await ask(engine(), 'A5', id, step + 3, flags));
          expectUnknown(await ask(engine(), 'A5', id, 1), id, 'A5');
          return told;
        },
        (told) => told.every(({ status }) => status === 200),
      );
      expect(replies.map(readValue)).toEqual([folded(3), folded(3, 4), folded(3, 4, 5), folded(3, 4, 5, 6)]);
    });

    it('a sequence can be one request', async () => {
      const id = fresh();
      expect(await tell(engine(), 'sequence_wide', id, 3, ONLY)).toBe(folded(3));
      expectUnknown(await ask(engine(), 'sequence_wide', id, 1), id, 'sequence_wide');
      expect(await tell(engine(), 'sequence_wide', id, 4, ONLY)).toBe(folded(4));
    });

    it('refuses an unstarted sequence with Triton’s error text', async () => {
      const id = fresh();
      expectUnknown(await ask(engine(), 'sequence_wide', id, 1), id, 'sequence_wide');
      expectUnknown(await ask(engine(), 'sequence_wide', id, 1, END), id, 'sequence_wide');
      expectUnknown(await ask(engine(), 'sequence_wide', 'nobody', 1), 'nobody', 'sequence_wide');
    });

    it('a START for a sequence that is going on begins it again', async () => {
      const id = fresh();
      await tell(engine(), 'sequence_wide', id, 3, START);
      await tell(engine(), 'sequence_wide', id, 4);
      expect(await tell(engine(), 'sequence_wide', id, 5, START)).toBe(folded(5));
      expect(await tell(engine(), 'sequence_wide', id, 6)).toBe(folded(5, 6));
      expect(await tell(engine(), 'sequence_wide', id, 7, ONLY)).toBe(folded(7));
      expectUnknown(await ask(engine(), 'sequence_wide', id, 1), id, 'sequence_wide');
    });

    it('two that alternate never mix', async () => {
      const [a, b] = [fresh(), fresh()];
      expect(await tell(engine(), 'sequence_wide', a, 1, START)).toBe(folded(1));
      expect(await tell(engine(), 'sequence_wide', b, 2, START)).toBe(folded(2));
      expect(await tell(engine(), 'sequence_wide', a, 3)).toBe(folded(1, 3));
      expect(await tell(engine(), 'sequence_wide', b, 4, END)).toBe(folded(2, 4));
      expect(await tell(engine(), 'sequence_wide', a, 5, END)).toBe(folded(1, 3, 5));
    });

    it('a text id and its number are two sequences', async () => {
      const id = fresh();
      const [text, uuid] = [String(id), '5f0c6c1e-6a0a-4a8e-9c5d-0f6c7c0a8b11'];
      expect(await tell(engine(), 'sequence_many', text, 1, START)).toBe(folded(1));
      expect(await tell(engine(), 'sequence_many', id, 2, START)).toBe(folded(2));
      expect(await tell(engine(), 'sequence_many', uuid, 3, START)).toBe(folded(3));
      expect(await tell(engine(), 'sequence_many', text, 4, END)).toBe(folded(1, 4));
      expect(await tell(engine(), 'sequence_many', id, 5, END)).toBe(folded(2, 5));
      expect(await tell(engine(), 'sequence_many', uuid, 6, END)).toBe(folded(3, 6));
    });

    it('takes JSON as well', async () => {
      const id = fresh();
      const inputs = [tensor('sequence_many', 6)];
      const answer = (flags: Flags) =>
        askInfer(engine(), 'sequence_many', inputs, { parameters: parametersOf(id, flags) }, 'json');
      expect(readValue(await answer(START))).toBe(folded(6));
      expect(readValue(await answer(END))).toBe(folded(6, 6));
    });

    it('0, the empty text and no id at all are no sequence', async () => {
      for (const id of [0, '', undefined]) {
        const reply = await ask(engine(), 'sequence_wide', id, 1, START);
        expect(reply.status).toBe(400);
        expect(errorOf(reply)).toContain('must specify a non-zero or non-empty correlation ID');
      }
    });

    it('takes one item at a time', async () => {
      const pair = { name: 'X', datatype: 'FP32' as const, shape: [2, 1], bytes: new Uint8Array(8) };
      const parameters = parametersOf(fresh(), START);
      const reply = await askInfer(engine(), 'sequence_many', [pair], { parameters });
      expect(reply.status).toBe(400);
      expect(errorOf(reply)).toContain('must specify batch-size 1');
    });

    it('passes start, end, readiness and id to the network', async () => {
      const id = fresh();
      const told = async (flags: Flags) => {
        const given = { parameters: parametersOf(id, flags) };
        return floats(await infer(engine(), 'sequence_controls', [row('X', 1)], given), 'TOLD');
      };
      expect(await told(START)).toEqual([1, 5, 1, id]);
      expect(await told({})).toEqual([0, 5, 1, id]);
      expect(await told(END)).toEqual([0, 7, 1, id]);
      expect(await told(ONLY)).toEqual([1, 7, 1, id]);
    });

    it('A1: requests of different sequences share an execution with separate states', async () => {
      const ids = [fresh(), fresh(), fresh(), fresh()];
      const before = await batchCounts(engine(), 'sequence_batches');
      for (const [step, flags] of [START, {}, END].entries()) {
        const answers = ids.map((id, index) => tell(engine(), 'sequence_batches', id, 10 * index + step, flags));
        const expected = ids.map((_, index) =>
          folded(...[0, 1, 2].slice(0, step + 1).map((past) => 10 * index + past)),
        );
        expect(await Promise.all(answers)).toEqual(expected);
      }
      expect((await batchCounts(engine(), 'sequence_batches'))[4]).toBe((before[4] ?? 0) + 3);
    });

    it('A1: the direct strategy waits until its rows are taken', async () => {
      const ids = [fresh(), fresh(), fresh(), fresh()];
      const before = (await statistics(engine(), 'sequence_direct')).execution_count;
      const first = await Promise.all(ids.map((id, index) => tell(engine(), 'sequence_direct', id, index, START)));
      expect(first).toEqual([0, 1, 2, 3].map((value) => folded(value)));
      const second = await Promise.all(ids.map((id) => tell(engine(), 'sequence_direct', id, 9, END)));
      expect(second).toEqual([0, 1, 2, 3].map((value) => folded(value, 9)));
      expect((await statistics(engine(), 'sequence_direct')).execution_count).toBe(before + 2);
    });

    it('the direct strategy ignores unused rows', async () => {
      const ids = [fresh(), fresh(), fresh()];
      const knows = ids.map((): number[] => []);
      const step = async (index: number, value: number, flags: Flags) => {
        knows[index]!.push(value);
        expect(await tell(engine(), 'sequence_rows', ids[index]!, value, flags)).toBe(folded(...knows[index]!));
      };
      for (const index of [0, 1, 2]) await step(index, index + 1, START);
      for (const [index, value] of [2, 1, 2, 0, 1, 2].entries()) await step(value, index, {});
      for (const index of [1, 0, 2]) await step(index, 9, END);
    });

    it('A18: an ensemble passes the sequence on to its stateful step', async () => {
      const [a, b] = [fresh(), fresh()];
      expect(await tell(engine(), 'sequence_ensemble', a, 1, START)).toBe(folded(2));
      expect(await tell(engine(), 'sequence_ensemble', b, 10, START)).toBe(folded(20));
      expect(await tell(engine(), 'sequence_ensemble', a, 2)).toBe(folded(2, 4));
      expect(await tell(engine(), 'sequence_ensemble', b, 20, END)).toBe(folded(20, 40));
      expect(await tell(engine(), 'sequence_ensemble', a, 3, END)).toBe(folded(2, 4, 6));
      const reply = await ask(engine(), 'sequence_ensemble', a, 1);
      expectUnknown(reply, a, 'sequence_many');
    });

    it('sequences beyond the slots wait in order of arrival', async () => {
      const [a, b, c] = [fresh(), fresh(), fresh()];
      await tell(engine(), 'sequence_alone', a, 1, START);
      const order: Id[] = [];
      const waiting = [b, c].map((id) =>
        tell(engine(), 'sequence_alone', id, 5, ONLY).then((value) => {
          order.push(id);
          return value;
        }),
      );
      await untilPending(engine(), 'sequence_alone', 2);
      expect(await tell(engine(), 'sequence_alone', a, 2)).toBe(folded(1, 2));
      expect(order).toEqual([]);
      expect(await tell(engine(), 'sequence_alone', a, 3, END)).toBe(folded(1, 2, 3));
      expect(await Promise.all(waiting)).toEqual([folded(5), folded(5)]);
      expect(order).toEqual([b, c]);
    });

    it('a sequence without END frees its slot by idle timeout', async () => {
      const [a, b] = [fresh(), fresh()];
      await tell(engine(), 'sequence_single', a, 1, START);
      // Answered once the other sequence has expired.
      expect(await tell(engine(), 'sequence_single', b, 2, ONLY)).toBe(folded(2));
      expectUnknown(await ask(engine(), 'sequence_single', a, 1), a, 'sequence_single');
      expectUnknown(await ask(engine(), 'sequence_single', a, 1, END), a, 'sequence_single');
    });

    it('requests of one sequence run in order of arrival', async () => {
      const id = fresh();
      const ids = [fresh(), fresh(), fresh()];
      // The batch waits for four: until then the first request of the sequence stays, and the others behind
      // it.
      const queued: Promise<number>[] = [];
      for (const [value, flags] of [
        [1, START],
        [2, {}],
        [3, {}],
        [4, END],
      ] as const) {
        queued.push(tell(engine(), 'sequence_batches', id, value, flags));
        await untilPending(engine(), 'sequence_batches', queued.length);
      }
      for (const [step, flags] of [START, {}, {}, END].entries()) {
        await Promise.all(ids.map((other) => tell(engine(), 'sequence_batches', other, 1, flags)));
        expect(await queued[step]).toBe(folded(...[1, 2, 3, 4].slice(0, step + 1)));
      }
    });

    it('interleaved sequences get the results of separate ones', { timeout: 60_000 }, async () => {
      const sequence = fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 12 });
      const plan = fc.tuple(fc.array(sequence, { minLength: 2, maxLength: 24 }), fc.infiniteStream(fc.nat()));
      await fc.assert(
        fc.asyncProperty(plan, async ([sequences, draws]) => {
          const ids = sequences.map(fresh);
          await Promise.all(
            sequences.map(async (values, index) => {
              for (const [step, value] of values.entries()) {
                const flags = { start: step === 0, end: step === values.length - 1 };
                // Some clients yield now and then.
                for (let turns = draws.next().value % 4; turns > 0; turns--) await Promise.resolve();
                const known = await tell(
                  engine(),
                  index % 3 === 0 ? 'sequence_wide' : 'sequence_many',
                  ids[index]!,
                  value,
                  flags,
                );
                expect(known).toBe(folded(...values.slice(0, step + 1)));
              }
            }),
          );
        }),
        { numRuns: 12, endOnFailure: true },
      );
    });

    it('sixty-four vanished clients block slots no longer than the idle timeout', async () => {
      // As many as A5 has slots; server#8391 and #8449 report engines that failed here.
      const lost = Array.from({ length: 64 }, fresh);
      await Promise.all(lost.map((id) => ask(engine(), 'A5', id, 1, START)));
      const late = [fresh(), fresh(), fresh()];
      expect(await Promise.all(late.map((id) => tell(engine(), 'A5', id, 2, ONLY)))).toEqual(late.map(() => folded(2)));
      await eventually(
        () => Promise.all(late.map((id) => ask(engine(), 'A5', id, 3, ONLY))),
        (replies) => replies.every(({ status }) => status === 200),
      );
    });

    it('no sequence sees another’s state under timeouts, restarts and a backlog', {
      timeout: 60_000,
    }, async () => {
      // server#7117: the states of an ensemble were mixed up once requests timed out.
      const random = fc.sample(fc.infiniteStream(fc.nat(99)), 1)[0]!;
      const dice = () => random.next().value as number;
      let restarts = 0;
      const client = async (base: number) => {
        const values = Array.from({ length: 6 }, (_, step) => base * 10 + step);
        for (let attempt = 0; ; attempt++) {
          expect(attempt).toBeLessThan(40);
          // Ids are never reused: a step whose sender has left may still run and would join a new sequence
          // with its id (seen on Triton). The agent takes a new id, too.
          const id = fresh();
          const calm = attempt > 5;
          for (const [step, value] of values.entries()) {
            const flags = { start: step === 0, end: step === values.length - 1 };
            const impatient = !calm && dice() < 30;
            const signal = !calm && dice() < 15 ? AbortSignal.timeout(1 + (dice() % 3)) : undefined;
            const parameters = { ...parametersOf(id, flags), ...(impatient && { timeout: 1 + dice() * 20 }) };
            const reply = await askInfer(engine(), 'sequence_few_ensemble', [row('X', value)], {
              parameters,
              ...(signal && { signal }),
            }).catch(() => undefined);
            // A refused or departed client begins again, as the agent does.
            if (reply?.status !== 200) {
              restarts++;
              break;
            }
            expect(readValue(reply)).toBe(folded(...values.slice(0, step + 1).map((one) => 2 * one)));
            if (flags.end) return;
          }
        }
      };
      await Promise.all(Array.from({ length: 12 }, (_, index) => client(index + 1)));
      expect(restarts).toBeGreaterThan(0);
    });

    const leaving = 'a client that goes away breaks its sequence: nothing continues over the gap';
    differing(implementation, 'abandoned', leaving, async (expected) => {
      const id = fresh();
      const ids = [fresh(), fresh(), fresh()];
      const gone = new AbortController();
      const first = tell(engine(), 'sequence_batches', id, 1, START);
      await untilPending(engine(), 'sequence_batches', 1);
      const left = ask(engine(), 'sequence_batches', id, 2, { signal: gone.signal }).catch(() => 'gone');
      await untilPending(engine(), 'sequence_batches', 2);
      const after = ask(engine(), 'sequence_batches', id, 3);
      await untilPending(engine(), 'sequence_batches', 3);
      gone.abort();
      expect(await left).toBe('gone');
      if (expected === 'dropped') {
        // Requests after the gap are dropped; those before it are served.
        expect((await after).status).toBe(400);
        await untilPending(engine(), 'sequence_batches', 1);
        await Promise.all(ids.map((other) => ask(engine(), 'sequence_batches', other, 1, ONLY)));
        expect(await first).toBe(folded(1));
        expectUnknown(await ask(engine(), 'sequence_batches', id, 4), id, 'sequence_batches');
      } else {
        for (const flags of [START, {}, END])
          await Promise.all(ids.map((other) => ask(engine(), 'sequence_batches', other, 1, flags)));
        expect(await first).toBe(folded(1));
        expect(readValue(await after)).toBe(folded(1, 2, 3));
      }
    });

    it('a reload drops the sequences of a model', async () => {
      const id = fresh();
      const loadWith = async (bound: number) => {
        const model = sequenceModels.sequence_many!;
        const config = model.config.replace('max_candidate_sequences: 64', `max_candidate_sequences: ${bound}`);
        await engine().put({ sequence_reloaded: { ...model, config } });
        expect((await load(engine(), 'sequence_reloaded')).status).toBe(200);
      };
      await loadWith(3);
      await tell(engine(), 'sequence_reloaded', id, 1, START);
      await loadWith(4);
      const reply = await eventually(
        () => ask(engine(), 'sequence_reloaded', id, 2),
        ({ status }) => status === 400,
      );
      expectUnknown(reply, id, 'sequence_reloaded');
      expect(await tell(engine(), 'sequence_reloaded', id, 3, START)).toBe(folded(3));
      await unload(engine(), 'sequence_reloaded');
      await untilState(engine(), 'sequence_reloaded', 'UNAVAILABLE');
    });
  });
