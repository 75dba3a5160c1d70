import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InferOutcome } from '../../../../infra/pool/agent/engine/engine.ts';
import { STREAM_HEARD_MS } from '../../../../infra/pool/agent/stream/acknowledgements.ts';
import { STREAM_BACKLOG_S } from '../../../../infra/pool/agent/stream/scribe.ts';
import { SEQUENCE_PARK_MS } from '../../../../infra/pool/agent/stream/sequence.ts';
import { STREAM_STALL_MS } from '../../../../infra/pool/agent/stream/stall.ts';
import { STREAM_PATIENCE_MS } from '../../../../infra/pool/agent/stream/steps.ts';
import { createFakeClock, type FakeClock, settle } from '../../../fake/clock.ts';
import { createSequenceEngine, type SequenceRequest } from '../../../fake/sequence-engine.ts';
import {
  type FakeSession,
  type Happening,
  makeLiveParts,
  optionsOf,
  playFrom,
  REBUILDS,
  segmentsIn,
  startSession,
} from '../../../fake/stream-session.ts';
import { runs } from '../../../seeds.ts';
import { joinSamples, silence, voice } from '../fixtures.ts';
import { linear16 } from './start-stream.ts';

const sound = linear16(joinSamples(silence(0.4), voice(1.5), silence(1), voice(0.8), silence(1)));
const chunks: Happening[] = Array.from({ length: Math.ceil(sound.length / 3_200) }, (_, i) => ({
  audio: sound.subarray(i * 3_200, (i + 1) * 3_200),
}));
const never = new Promise<void>(() => {});
const lost: InferOutcome = { ok: false, retryable: true, detail: 'engine ECONNREFUSED' };

function scene(slots = 64) {
  const engine = createSequenceEngine();
  const time = createFakeClock();
  return { engine, time, ...makeLiveParts(engine, time.clock, slots) };
}

/** Lets time pass in small steps until `work` has ended, and says how long that took. */
async function pass<T>(time: FakeClock, work: Promise<T>, most = 60_000): Promise<{ value: T; ms: number }> {
  const begun = time.now();
  let done = false;
  const ended = work.finally(() => {
    done = true;
  });
  while (!done && time.now() - begun < most) await time.advance(50);
  return { value: await ended, ms: time.now() - begun };
}

/** Transcript of an undisturbed stream. */
const undisturbed = await (async () => {
  const { live } = makeLiveParts(createSequenceEngine());
  return segmentsIn(await playFrom(await startSession({ live }), chunks));
})();

const idsOf = (asked: readonly SequenceRequest[]) => [...new Set(asked.map(({ id }) => id))];

describe('the breaker of a stream (A8)', () => {
  it('restarts a sequence after 200 ms without an answer, without loss', async () => {
    const { engine, time, live } = scene();
    engine.hold = (number) => (number === 5 ? never : undefined);
    const session = await startSession({ live });
    const { value: events, ms } = await pass(time, playFrom(session, chunks));
    expect(segmentsIn(events)).toEqual(undisturbed);
    expect(ms).toBeLessThan(STREAM_STALL_MS + 200);
    const [first, second] = idsOf(engine.requests);
    // The one that stalled was ended, the next began at its first window.
    expect(engine.requests.filter(({ id }) => id === first).at(-1)).toMatchObject({ start: false, end: true });
    expect(engine.requests.find(({ id }) => id === second)).toMatchObject({ start: true });
    expect(engine.requests.find(({ id }) => id === second)?.samples).toEqual(engine.requests[0]?.samples);
    expect(engine.open.size).toBe(0);
  });

  it('is as quick again once an utterance went without a stall', async () => {
    const { engine, time, live } = scene();
    // The fifth step of the first and of the third utterance; the second and the fourth go without.
    const stuck = new Set<string>();
    engine.hold = (_, { id }) => {
      const nth = idsOf(engine.requests).indexOf(id);
      const steps = engine.requests.filter((one) => one.id === id).length;
      if (![0, 3].includes(nth) || steps !== 5) return undefined;
      stuck.add(id);
      return never;
    };
    const session = await startSession({ live });
    const { ms } = await pass(time, playFrom(session, [...chunks, ...chunks]));
    expect(stuck.size).toBe(2);
    expect(ms).toBeLessThan(2 * STREAM_STALL_MS + 100);
  });

  it('touches no other stream: no cascade', async () => {
    const { engine, time, live } = scene();
    // The third sequence is never answered again after its fourth window.
    const steps = new Map<string, number>();
    engine.hold = (_, { id }) => {
      const count = (steps.get(id) ?? 0) + 1;
      steps.set(id, count);
      return idsOf(engine.requests).indexOf(id) === 2 && count > 4 ? never : undefined;
    };
    const sessions = await Promise.all(Array.from({ length: 20 }, () => startSession({ live })));
    const { value: all } = await pass(time, Promise.all(sessions.map((session) => playFrom(session, chunks))));
    for (const events of all) expect(segmentsIn(events)).toEqual(undisturbed);
    // Two utterances each, and one more for the one that stalled.
    expect(idsOf(engine.requests)).toHaveLength(20 * 2 + 1);
  });

  it('retries a slow engine once or twice only', async () => {
    const { engine, time, live } = scene();
    engine.hold = () => new Promise((resolve) => void time.clock.after(300, resolve));
    const { value: events } = await pass(time, playFrom(await startSession({ live }), chunks));
    expect(segmentsIn(events)).toEqual(undisturbed);
    expect(idsOf(engine.requests)).toHaveLength(2 + 1);
  });

  it('does not blame the engine for a pause of its own', async () => {
    const { engine, time, live } = scene();
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    engine.hold = (number) => (number === 5 ? answered : undefined);
    const work = playFrom(await startSession({ live }), chunks);
    while (engine.requests.length < 6) await settle();
    // Messages that arrived meanwhile are read after the timers, however late those are.
    time.jump(STREAM_PATIENCE_MS * 2);
    answer();
    const { value: events } = await pass(time, work);
    expect(segmentsIn(events)).toEqual(undisturbed);
    expect(idsOf(engine.requests)).toHaveLength(2);
  });

  it('an engine-wide pause costs a few sequences; the others get late answers', async () => {
    const { engine, time, live } = scene(512);
    let wake = () => {};
    const awake = new Promise<void>((resolve) => {
      wake = resolve;
    });
    engine.hold = () => awake;
    const sessions = await Promise.all(Array.from({ length: 60 }, () => startSession({ live })));
    const work = Promise.all(sessions.map((session) => playFrom(session, chunks)));
    let most = 0;
    for (let i = 0; i < 20; i++) {
      await time.advance(50);
      most = Math.max(most, live.tracks.rebuilding());
    }
    expect(most).toBe(REBUILDS);
    wake();
    const { value: all } = await pass(time, work);
    for (const events of all) expect(segmentsIn(events)).toEqual(undisturbed);
    // Within a second each place was used at 200 and at 600 ms.
    expect(idsOf(engine.requests).length).toBeLessThanOrEqual(60 * 2 + 2 * REBUILDS);
  });

  it('gives up all streams in time when the engine never wakes', async () => {
    const { engine, time, live } = scene(512);
    engine.hold = () => never;
    const sessions = await Promise.all(Array.from({ length: 60 }, () => startSession({ live })));
    for (const session of sessions) void playFrom(session, chunks);
    await time.advance(STREAM_PATIENCE_MS * 2);
    for (const session of sessions) expect(session.refusals).toMatchObject([{ reason: 'engine_failed' }]);
    expect(live.tracks.rebuilding()).toBe(0);
  });

  it('keeps a model for as long as a stream of it is open', () => {
    const { tracks } = scene(16).live;
    const [one, other] = [new AbortController(), new AbortController()];
    const track = tracks.of('old', one.signal);
    expect(tracks.of('old', other.signal)).toBe(track);
    one.abort();
    expect(tracks.of('old', AbortSignal.abort())).toBe(track);
    other.abort();
    expect(tracks.of('old', new AbortController().signal)).not.toBe(track);
  });

  it('keeps to its model: another one on the same engine goes on', async () => {
    const { engine, time, live } = scene(16);
    engine.hold = (_, { model }) => (model === 'stuck' ? never : undefined);
    const stuck = await Promise.all(Array.from({ length: 40 }, () => startSession({ live, liveModel: 'stuck' })));
    for (const session of stuck) void playFrom(session, chunks);
    await time.advance(1_000);
    const { value: events, ms } = await pass(time, playFrom(await startSession({ live }), chunks));
    expect(segmentsIn(events)).toEqual(undisturbed);
    expect(ms).toBeLessThan(200);
    await time.advance(20_000);
    for (const session of stuck) expect(session.refusals).toMatchObject([{ reason: 'engine_failed' }]);
  });

  it('gives an engine up that answers nothing, so that the edge finds another', async () => {
    const { engine, time, live } = scene();
    engine.hold = () => never;
    const session = await startSession({ live });
    void playFrom(session, chunks);
    await time.advance(STREAM_PATIENCE_MS * 2);
    expect(session.refusals).toMatchObject([{ reason: 'engine_failed' }]);
    // 200, 400, 800, 1600, 3200 ms.
    expect(engine.requests.filter(({ start }) => start)).toHaveLength(5);
  });
});

describe('an engine that is restarted, forgets or fails (R1)', () => {
  it('is waited for, and the sequence starts again from the samples', async () => {
    const { engine, time, live } = scene();
    engine.answer = (number) => (number >= 4 && time.now() < 1_002_000 ? lost : undefined);
    const session = await startSession({ live });
    const work = playFrom(session, chunks);
    await time.advance(1_500);
    engine.forget();
    const { value: events } = await pass(time, work);
    expect(segmentsIn(events)).toEqual(undisturbed);
  });

  it('is given up when it stays away', async () => {
    const { engine, time, live } = scene();
    engine.answer = () => lost;
    const session = await startSession({ live });
    void playFrom(session, chunks);
    await time.advance(STREAM_PATIENCE_MS - 1_500);
    expect(session.refusals).toEqual([]);
    await time.advance(3_000);
    expect(session.refusals).toMatchObject([{ reason: 'engine_failed', detail: 'engine ECONNREFUSED' }]);
  });

  it('may say that the sequence has to be started: it is', async () => {
    const { engine, time, live } = scene();
    const session = await startSession({ live });
    engine.hold = (number) => {
      if (number === 6) engine.forget();
      return undefined;
    };
    const { value: events } = await pass(time, playFrom(session, chunks));
    expect(segmentsIn(events)).toEqual(undisturbed);
    expect(idsOf(engine.requests)).toHaveLength(3);
  });

  it('is given up at once when its answer is none', async () => {
    const { engine, live } = scene();
    engine.answer = () => ({ ok: true, value: new Map() });
    const session = await startSession({ live });
    void playFrom(session, chunks);
    while (session.refusals.length === 0) await settle();
    expect(session.refusals).toMatchObject([{ reason: 'engine_failed' }]);
    expect(engine.open.size).toBe(0);
  });

  it('is given up when it refuses one window for ever', async () => {
    const { engine, time, live } = scene();
    const steps = new Map<string, number>();
    engine.answer = (_, { id }) => {
      steps.set(id, (steps.get(id) ?? 0) + 1);
      return (steps.get(id) ?? 0) > 3
        ? { ok: false, retryable: false, detail: 'engine status 400', status: 400 }
        : undefined;
    };
    const session = await startSession({ live });
    void playFrom(session, chunks);
    await time.advance(20_000);
    expect(session.refusals).toMatchObject([{ reason: 'engine_failed' }]);
  });

  it('has the sequence ended before it would throw it away, while no sound comes', async () => {
    const { engine, time, live } = scene();
    const session = await startSession({ live });
    for (const chunk of chunks.slice(0, 12)) await session.play(chunk);
    await time.advance(SEQUENCE_PARK_MS - 10);
    expect(engine.open.size).toBe(1);
    await time.advance(20);
    expect(engine.open.size).toBe(0);
    const { value: events } = await pass(
      time,
      (async () => {
        for (const chunk of chunks.slice(12)) await session.play(chunk);
        return session.end();
      })(),
    );
    expect(segmentsIn(events)).toEqual(undisturbed);
  });
});

describe('bounds of a stream', () => {
  it('reads no further than it recognises: audio waits at the edge', async () => {
    const { engine, live } = scene();
    engine.hold = () => never;
    const session = await startSession({ live });
    const second = linear16(voice(1));
    let heard = 0;
    let waits = false;
    while (!waits) {
      const taken = session.play({ audio: second }).then(() => 'taken');
      waits =
        (await Promise.race([
          taken,
          settle()
            .then(settle)
            .then(() => 'waits'),
        ])) === 'waits';
      if (!waits) heard++;
    }
    expect(heard).toBeGreaterThanOrEqual(STREAM_BACKLOG_S);
    expect(heard).toBeLessThanOrEqual(STREAM_BACKLOG_S + 2);
  });
});

describe('the position up to which checkpoints come without more audio (R1)', () => {
  it('is announced behind each utterance, while the engine has not answered', async () => {
    const { engine, time, live } = scene();
    engine.hold = () => never;
    const session = await startSession({ live });
    const cutAfter = async (samples: Float32Array) => {
      await session.play({ audio: linear16(samples) });
      await time.advance(STREAM_HEARD_MS);
      return session.events.findLast((event) => event.type === 'heard')?.cut;
    };
    expect(await cutAfter(voice(1))).toBe(0);
    const second = linear16(voice(1)).length;
    const cut = await cutAfter(silence(0.9));
    expect(cut).toBeGreaterThan(second);
    expect(await cutAfter(voice(1))).toBe(cut);
    expect(session.events.filter(({ type }) => type === 'checkpoint')).toEqual([]);
  });
});

describe('an edge that does not read', () => {
  it('gets no interims meanwhile, and every segment', async () => {
    const { live } = scene();
    const options = optionsOf({ interim: true });
    const events = await playFrom(await startSession({ live, options, congested: () => true }), chunks);
    expect(events.filter(({ type }) => type === 'interim')).toEqual([]);
    expect(segmentsIn(events)).toEqual(undisturbed);
    const read = await playFrom(await startSession({ live, options }), chunks);
    expect(read.filter(({ type }) => type === 'interim').length).toBeGreaterThan(0);
  });
});

describe('a client that sends a second of sound at once', () => {
  it('keeps a window for the pause instead of resending its sequence each second', async () => {
    const { engine, time, live } = scene();
    const session = await startSession({ live });
    const whole = linear16(joinSamples(silence(0.4), voice(8), silence(1)));
    for (let at = 0; at < whole.length; at += 32_000) {
      await session.play({ audio: whole.subarray(at, at + 32_000) });
      await time.advance(1_000);
    }
    await pass(time, session.end());
    // Once, to learn that it is such a client.
    expect(idsOf(engine.requests).length).toBeLessThanOrEqual(2);
    expect(segmentsIn(session.events)).toHaveLength(1);
    session.cancel();
  });
});

type Fate = 'answer' | 'stall' | 'lost' | 'forget' | 'slow';

describe('whatever happens', () => {
  it('MUST 67: ends every sequence; windows arrive in order, singly (A5, A8)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.tuple(fc.constantFrom<Fate>('answer', 'answer', 'answer', 'stall', 'lost', 'forget', 'slow'), fc.nat(12)),
          { maxLength: 12 },
        ),
        fc.option(fc.nat(4_000)),
        fc.nat(3),
        async (fates, vanishes, others) => {
          const { engine, time, live } = scene(4);
          const plan = fates.flatMap(([fate, before]) => [...Array<Fate>(before).fill('answer'), fate]);
          engine.hold = (number) => {
            if (plan[number] === 'forget') engine.forget();
            if (plan[number] === 'slow') return new Promise((resolve) => void time.clock.after(150, resolve));
            return plan[number] === 'stall' ? never : undefined;
          };
          engine.answer = (number) => (plan[number] === 'lost' ? lost : undefined);
          const sessions: FakeSession[] = [];
          for (let i = 0; i <= others; i++) sessions.push(await startSession({ live }));
          const work = sessions.map((session) => playFrom(session, chunks).catch(() => []));
          if (vanishes !== null) {
            await time.advance(vanishes);
            sessions[0]?.cancel();
          }
          await time.advance(60_000);
          const [first, ...rest] = await Promise.all(work);
          if (vanishes === null) expect(segmentsIn(first ?? [])).toEqual(undisturbed);
          for (const events of rest) expect(segmentsIn(events)).toEqual(undisturbed);
          expect(engine.open.size).toBe(0);
          expect(engine.most()).toBeLessThanOrEqual(1);
          for (const id of idsOf(engine.requests)) {
            const own = engine.requests.filter((asked) => asked.id === id);
            expect(own.findIndex(({ start }) => start)).toBe(0);
            expect(own.at(-1)?.end).toBe(true);
          }
        },
      ),
      { numRuns: runs(40, 400), endOnFailure: true },
    );
  }, 120_000);
});
