import { describe, expect, it } from 'vitest';
import { createCutter, quietestCut, type Utterance } from '../../../../../infra/pool/agent/asr/vad/cut.ts';
import {
  createVoiceDetector,
  FRAME_SAMPLES,
  UNIT_SAMPLES,
  UNIT_SECONDS,
} from '../../../../../infra/pool/agent/asr/vad/detect.ts';
import { listen } from '../../../../../infra/pool/agent/asr/vad/listen.ts';
import { UTTERANCE_S } from '../../../../../infra/pool/agent/settings/limits.ts';
import { ok } from '../../../../../shared/result.ts';
import { joinSamples, silence, voice } from '../../fixtures.ts';

/** Units from a drawing: `#` voice, `,` quiet voice, `.` silence. */
function cut(drawing: string) {
  const cutter = createCutter();
  const found: Utterance[] = [];
  let most = 0;
  const level: Record<string, number> = { '#': 0.5, ',': 0.1, '.': 0 };
  for (const mark of drawing) {
    const samples = new Float32Array(UNIT_SAMPLES).fill(level[mark] ?? 0);
    const utterance = cutter.push({ samples, voiced: mark !== '.' });
    if (utterance) found.push(utterance);
    most = Math.max(most, cutter.heldUnits());
  }
  const last = cutter.finish();
  if (last) found.push(last);
  return {
    most,
    /** First unit and length in units. */
    pieces: found.map(({ start, samples }) => [start / UNIT_SAMPLES, samples.length / UNIT_SAMPLES]),
    speech: found.reduce((sum, { speechSeconds }) => sum + speechSeconds, 0),
  };
}
const units = (seconds: number) => seconds / UNIT_SECONDS;

describe('A4: speech in units of 50 ms', () => {
  it('a unit is five frames of 10 ms', () => {
    expect([UNIT_SECONDS, UNIT_SAMPLES / FRAME_SAMPLES]).toEqual([0.05, 5]);
  });

  it('drops silence and keeps 300 ms on both sides of speech', () => {
    const { pieces, speech } = cut('.'.repeat(20) + '#'.repeat(10) + '.'.repeat(30));
    expect(pieces).toEqual([[14, 6 + 10 + 6]]);
    expect(speech).toBeCloseTo(0.5);
  });

  it('does not take a click for speech', () => {
    expect(cut(`${'.'.repeat(10)}#${'.'.repeat(20)}`).pieces).toEqual([]);
  });

  it('keeps a pause inside speech and cuts at a longer one', () => {
    const short = cut('.'.repeat(6) + '#'.repeat(10) + '.'.repeat(11) + '#'.repeat(10) + '.'.repeat(12));
    expect(short.pieces).toEqual([[0, 6 + 10 + 11 + 10 + 6]]);
    const long = cut('.'.repeat(6) + '#'.repeat(10) + '.'.repeat(12) + '#'.repeat(10) + '.'.repeat(12));
    expect(long.pieces).toEqual([
      [0, 22],
      [22, 22],
    ]);
  });

  it('loses no unit between two utterances that touch', () => {
    const { pieces } = cut('#'.repeat(10) + '.'.repeat(12) + '#'.repeat(10));
    expect(pieces).toEqual([
      [0, 16],
      [16, 16],
    ]);
  });

  it('cuts overlong speech after its quietest unit, and buffers one utterance at most', () => {
    const most = units(UTTERANCE_S);
    const { pieces, most: held } = cut(`${'#'.repeat(300)},${'#'.repeat(most)}`);
    expect(pieces[0]).toEqual([0, 301]);
    expect(pieces.reduce((sum, [, length]) => sum + (length ?? 0), 0)).toBe(most + 301);
    expect(held).toBeLessThanOrEqual(most);
  });

  it('speech without any pause comes out whole', () => {
    const most = units(UTTERANCE_S);
    expect(cut('#'.repeat(3 * most)).pieces.reduce((sum, [, length]) => sum + (length ?? 0), 0)).toBe(3 * most);
  });

  it('does not look for the quietest unit in the first half', () => {
    expect(quietestCut([0, 0, 5, 4, 3, 4])).toBe(5);
  });

  it('prefers a pause to the closure of a consonant', () => {
    expect(quietestCut([9, 9, 9, 9, 9, 0, 9, 9, 1, 1, 1, 9])).toBe(10);
  });
});

describe('voice detection', () => {
  it('hears a voice and not silence, a hum or a click', async () => {
    const detector = await createVoiceDetector();
    const share = (samples: Float32Array) => {
      let heard = 0;
      for (let at = 0; at + UNIT_SAMPLES <= samples.length; at += UNIT_SAMPLES) {
        if (detector.hasVoice(samples.subarray(at, at + UNIT_SAMPLES))) heard++;
      }
      return heard / Math.floor(samples.length / UNIT_SAMPLES);
    };
    expect(share(silence(2))).toBe(0);
    expect(share(voice(2))).toBeGreaterThan(0.9);
    detector.free();
  });

  it('gives positions and lengths in samples, whatever the sizes of the blocks', async () => {
    const samples = joinSamples(silence(1), voice(1), silence(1.01));
    const run = async (blockSamples: number) => {
      async function* blocks() {
        for (let at = 0; at < samples.length; at += blockSamples) {
          yield ok({ rate: 16_000, channels: [samples.subarray(at, at + blockSamples)] });
        }
      }
      const found: unknown[] = [];
      for await (const hearing of listen(blocks())) {
        if (!hearing.ok) throw new Error(hearing.refusal.reason);
        const { value } = hearing;
        found.push(value.type === 'utterance' ? [value.utterance.start, value.utterance.samples.length] : value);
      }
      return found;
    };
    const whole = await run(1_000_000);
    expect(whole.at(-1)).toMatchObject({ totals: { seconds: 3.01 } });
    expect(whole.length).toBe(2);
    expect(await run(77)).toEqual(whole);
  });

  it('U7 separate channels are cut as each of them alone', async () => {
    const [first, second] = [joinSamples(voice(1), silence(3)), joinSamples(silence(2), voice(1), silence(1))];
    const run = async (channels: readonly Float32Array[][], isSeparate: boolean) => {
      const found: unknown[] = [];
      for await (const event of listen(blocksOf(channels), isSeparate)) {
        if (!event.ok) found.push(event.refusal.reason);
        else if (event.value.type === 'totals') found.push(event.value.totals.channels);
        else if (event.value.type === 'utterance') {
          const { start, samples, channel } = event.value.utterance;
          found.push([channel, start, samples.length]);
        }
      }
      return found;
    };
    async function* blocksOf(all: readonly Float32Array[][]) {
      for (const channels of all) yield ok({ rate: 16_000, channels });
    }
    const alone = await Promise.all([first, second].map((one) => run([[one]], false)));
    const numbered = alone.map(([utterance], i) => [i, ...(utterance as unknown[]).slice(1)]);
    expect(await run([[first, silence(4), second]], true)).toEqual([numbered[0], [2, ...numbered[1]!.slice(1)], 3]);
    expect((await run([[first, second], [first]], true)).at(-1)).toBe('audio_unsupported');
  });
});
