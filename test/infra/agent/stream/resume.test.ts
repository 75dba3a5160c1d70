import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StreamFormat } from '../../../../shared/stream/format.ts';
import type { LinkEvent } from '../../../../shared/stream/link.ts';
import { createSequenceEngine } from '../../../fake/sequence-engine.ts';
import {
  checkpointsIn,
  type Happening,
  makeLiveParts,
  optionsOf,
  playFrom,
  segmentsIn,
  startSession,
} from '../../../fake/stream-session.ts';
import { runs } from '../../../seeds.ts';
import { joinSamples, silence, voice } from '../fixtures.ts';
import { linear16 } from './start-stream.ts';

const formats: StreamFormat[] = [
  { encoding: 'linear16', rate: 16_000, channels: 1 },
  { encoding: 'linear16', rate: 8_000, channels: 1 },
  { encoding: 'linear16', rate: 44_100, channels: 1 },
  { encoding: 'linear16', rate: 48_000, channels: 2 },
  { encoding: 'mulaw', rate: 8_000, channels: 1 },
];

/** Noise that no voice detector takes for a voice, always the same. */
function hiss(seconds: number, rate: number): Float32Array {
  let seed = 1;
  return Float32Array.from({ length: Math.round(seconds * rate) }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (seed / 0x7fff_ffff - 0.5) * 0.004;
  });
}

const makers = { voice, silence, hiss };

function encode(samples: Float32Array, { encoding, channels }: StreamFormat): Uint8Array {
  const wide =
    channels === 1
      ? samples
      : samples.reduce((out, sample, i) => out.fill(sample, 2 * i, 2 * i + 2), new Float32Array(samples.length * 2));
  if (encoding === 'linear16') return linear16(wide);
  // Any bytes are sound in µ-law; loud and quiet ones are enough.
  return Uint8Array.from(
    wide,
    (sample) => (sample >= 0 ? 0x80 : 0) | (0x7f - Math.min(0x7f, Math.round(Math.abs(sample) * 300))),
  );
}

/** In chunks of any size, so that they cut samples, units and windows anywhere. */
function cutUp(bytes: Uint8Array, sizes: readonly number[]): Happening[] {
  const out: Happening[] = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 3_200;
    out.push({ audio: bytes.subarray(at, at + size) });
    at += size;
  }
  return out;
}

async function run(script: readonly Happening[], format: StreamFormat, endpointingMs: number | false) {
  const { live } = makeLiveParts(createSequenceEngine());
  const options = optionsOf({ endpointingMs, utteranceEndMs: 700 });
  const session = await startSession({ live, format, options });
  return { live, options, events: await playFrom(session, script) };
}

const told = (events: readonly LinkEvent[], index: number) =>
  segmentsIn(events).filter((event) => event.type === 'segment' && event.index >= index);
const finalOf = (events: readonly LinkEvent[]) => events.find(({ type }) => type === 'final');

const piece = fc.record({
  kind: fc.constantFrom('voice' as const, 'silence' as const, 'hiss' as const),
  seconds: fc.double({ min: 0.05, max: 2, noNaN: true }),
});
const between = fc.constantFrom<Happening | undefined>(undefined, undefined, undefined, { finalize: 1 }, { clear: 2 });

describe('checkpoints', () => {
  const format: StreamFormat = { encoding: 'linear16', rate: 16_000, channels: 1 };
  const spoken = (seconds: number) => cutUp(encode(voice(seconds), format), [3_200]);

  it.each<[string, Happening | undefined]>([
    ['an endpoint', undefined],
    ['a finalize', { finalize: 1 }],
  ])('follow each segment before anything else is said: after %s (MUST 64)', async (_, happening) => {
    // Too little silence for a checkpoint of its own.
    const pause = cutUp(encode(silence(0.9), format), [3_200]);
    const script = [
      ...spoken(1),
      ...(happening ? [happening] : pause),
      ...spoken(1),
      ...(happening ? [happening] : pause),
    ];
    const { events } = await run(script, format, 600);
    const segments = segmentsIn(events).flatMap((event) => (event.type === 'segment' ? [event.index] : []));
    expect(segments.length).toBeGreaterThanOrEqual(2);
    for (const index of segments) {
      const at = events.findIndex((event) => event.type === 'segment' && event.index === index);
      const next = events
        .slice(at + 1)
        .find(({ type }) => type === 'checkpoint' || type === 'segment' || type === 'final');
      expect(next).toMatchObject({ type: 'checkpoint', index: index + 1 });
    }
  });

  it('come after what is cleared, so that it never comes back', async () => {
    const { events } = await run([...spoken(1), { clear: 1 }], format, 600);
    expect(segmentsIn(events)).toEqual([]);
    expect(checkpointsIn(events).map(({ position }) => position)).toContain(32_000);
  });
});

describe('a stream that moves to another agent (R1, A4)', () => {
  it('MUST 63: continues from any checkpoint with equal text, times, numbers and totals', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(piece, between), { minLength: 1, maxLength: 8 }),
        fc.constantFrom(...formats),
        fc.constantFrom<number | false>(600, 300, 50, 1_500, false),
        fc.array(fc.integer({ min: 1, max: 9_999 }), { minLength: 1, maxLength: 5 }),
        fc.nat(),
        async (pieces, format, endpointingMs, sizes, pick) => {
          const script = pieces.flatMap(([{ kind, seconds }, then]) => [
            ...cutUp(encode(makers[kind](seconds, format.rate), format), sizes),
            ...(then ? [then] : []),
          ]);
          const { live, options, events } = await run(script, format, endpointingMs);
          const all = checkpointsIn(events);
          const from = all[pick % Math.max(1, all.length)];
          if (!from) return;
          const again = await playFrom(await startSession({ live, format, options, from }), script, from);
          expect(told(again, 0)).toEqual(told(events, from.index));
          expect(finalOf(again)).toEqual(finalOf(events));
        },
      ),
      { numRuns: runs(40, 400), endOnFailure: true },
    );
  }, 120_000);

  it('also inside endless speech, which is cut at its longest', async () => {
    const format = { encoding: 'linear16', rate: 16_000, channels: 1 } as const;
    const sound = joinSamples(silence(0.3), voice(26), silence(0.1), voice(22), silence(1));
    const script = cutUp(linear16(sound), [3_200]);
    const { live, options, events } = await run(script, format, 600);
    expect(told(events, 0).map((event) => event.type === 'segment' && event.ending)).toEqual([
      'length',
      'length',
      'endpoint',
    ]);
    for (const from of checkpointsIn(events)) {
      const again = await playFrom(await startSession({ live, format, options, from }), script, from);
      expect(told(again, 0)).toEqual(told(events, from.index));
      expect(finalOf(again)).toEqual(finalOf(events));
    }
  }, 60_000);
});
