import { describe, expect, it } from 'vitest';
import type { DecodedWord, WordDecoder } from '../../../../infra/pool/agent/asr/decode/decoder.ts';
import { createRecognition } from '../../../../infra/pool/agent/asr/recognise.ts';
import type { Dispatcher } from '../../../../infra/pool/agent/engine/dispatch.ts';
import { ANSWER_EVENT_BYTES, UTTERANCES_IN_FLIGHT_MAX } from '../../../../infra/pool/agent/settings/limits.ts';
import { fp32Tensor, int32Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../shared/result.ts';
import { answerEvent, type Segment } from '../../../../shared/speech/transcript.ts';

const WIDTH = 3;
const utterance = { start: 0, samples: new Float32Array(16_000), speechSeconds: 1 };

/** A decoder that hears the same in everything. */
const hearing = (words: readonly DecodedWord[]): WordDecoder => ({
  width: WIDTH,
  begin: () => {
    const decoded = () => ({ text: words.map(({ word }) => word).join(' '), words, confidence: 1 });
    return { push: () => {}, partial: () => ({ ...decoded(), stable: 0, whole: 0 }), finish: decoded };
  },
});
const word = (text: string, frame = 0): DecodedWord => ({
  word: text,
  startFrame: frame,
  endFrame: frame + 1,
  confidence: 0.5,
});

interface Scene {
  readonly decoder?: WordDecoder;
  readonly columns?: number;
  readonly logProbability?: number;
  readonly onSegment?: (segment: Segment) => Promise<void>;
  readonly run?: Dispatcher['run'];
}

/** A recognition whose engine answers each utterance with one frame. */
function begin(scene: Scene = {}) {
  const { columns = WIDTH, logProbability = -1 } = scene;
  const segments: Segment[] = [];
  const cancel = new AbortController();
  const answer = new Map([
    ['LOG_PROBS', fp32Tensor('LOG_PROBS', new Float32Array(columns).fill(logProbability), [1, 1, columns])],
    ['FRAMES', int32Tensor('FRAMES', Int32Array.of(1), [1, 1])],
  ]);
  const run = scene.run ?? (async () => ok(answer));
  const recognition = createRecognition({
    recogniser: { model: 'm', frameSeconds: 0.04, decoder: scene.decoder ?? hearing([word('hello')]) },
    dispatcher: { run } as unknown as Dispatcher,
    class: 'default',
    deadline: 0,
    signal: cancel.signal,
    onSegment: scene.onSegment ?? (async (segment) => void segments.push(segment)),
  });
  return { recognition, segments, cancel };
}

/** Hands over more utterances than may be in flight; the last outcome. */
async function addMany(recognition: ReturnType<typeof createRecognition>) {
  let last = await recognition.add(utterance);
  for (let i = 0; i < UTTERANCES_IN_FLIGHT_MAX + 2; i++) last = await recognition.add(utterance);
  return last;
}

describe('recognition of a recording', () => {
  const bug = async () => {
    throw new TypeError('what was said');
  };
  it.each<[string, Scene]>([
    ['who gets the segments fails', { onSegment: bug }],
    ['the dispatcher fails', { run: bug }],
    [
      'the decoder fails',
      {
        decoder: {
          width: WIDTH,
          begin: () => {
            throw new TypeError('what was said');
          },
        },
      },
    ],
  ])('is refused without hanging when %s', async (_, scene) => {
    const { recognition } = begin(scene);
    expect(await addMany(recognition)).toMatchObject({ ok: false, refusal: { reason: 'internal' } });
    const outcome = await recognition.finish();
    expect(outcome).toMatchObject({ ok: false, refusal: { reason: 'internal' } });
    // The log gets the class and the place of the bug and not its message, which may quote content.
    const detail = outcome.ok ? '' : outcome.refusal.detail;
    expect(detail).toMatch(/^TypeError: at .*recognise\.test/);
    expect(detail).not.toContain('what was said');
  });

  it('stops waiting when the request is over', async () => {
    const { recognition, cancel } = begin({ run: () => new Promise(() => {}) });
    const added = Promise.all(Array.from({ length: UTTERANCES_IN_FLIGHT_MAX }, () => recognition.add(utterance)));
    cancel.abort();
    await added;
  });

  it('splits a segment too large for a record between words, without a gap', async () => {
    const words = Array.from({ length: 1_500 }, (_, i) => word(`word${i}`.padEnd(40, 'x'), i % 20));
    const { recognition, segments } = begin({ decoder: hearing(words) });
    await recognition.add(utterance);
    expect(await recognition.finish()).toEqual(ok(segments.length));
    expect(segments.length).toBeGreaterThan(2);
    expect(segments.flatMap((segment) => segment.words.map((one) => one.word))).toEqual(words.map((one) => one.word));
    expect(segments.map(({ index }) => index)).toEqual([...segments.keys()]);
    for (const segment of segments) {
      expect(segment.text).toBe(segment.words.map((one) => one.word).join(' '));
      expect(Buffer.byteLength(JSON.stringify(segment))).toBeLessThanOrEqual(ANSWER_EVENT_BYTES);
      expect(answerEvent.safeParse(segment).success).toBe(true);
    }
  });

  it.each<[string, Scene]>([
    ['a word longer than an event', { decoder: hearing([word('x'.repeat(ANSWER_EVENT_BYTES))]) }],
    ['columns for another vocabulary (A18)', { columns: WIDTH + 1 }],
    ['no numbers', { logProbability: Number.NaN }],
    ['nothing possible at all', { logProbability: Number.NEGATIVE_INFINITY }],
  ])('refuses an answer of %s', async (_, scene) => {
    const { recognition, segments } = begin(scene);
    await recognition.add(utterance);
    expect(await recognition.finish()).toMatchObject({ ok: false, refusal: { reason: 'engine_failed' } });
    expect(segments).toEqual([]);
  });
});
