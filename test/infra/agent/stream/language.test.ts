import { describe, expect, it } from 'vitest';
import type { DetectedLanguage } from '../../../../infra/pool/agent/asr/detect-language.ts';
import { LanguageGate } from '../../../../infra/pool/agent/stream/language-gate.ts';
import { createUtterance } from '../../../../infra/pool/agent/stream/utterance.ts';
import { fp32Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import { createSequenceEngine } from '../../../fake/sequence-engine.ts';
import {
  checkpointsIn,
  type Happening,
  makeLiveParts,
  playFrom,
  segmentsIn,
  startSession,
} from '../../../fake/stream-session.ts';
import { joinSamples, silence, voice } from '../fixtures.ts';
import { linear16 } from './start-stream.ts';

/** Seconds of speech in a request to the detector, and the probability of English that it answers. */
type Judge = (seconds: number) => number;

/** A session with a detector; `judged` are the seconds that it was sent. */
async function startDetecting(english: Judge, languages?: string[]) {
  const double = createSequenceEngine();
  const judged: number[] = [];
  const { infer } = double.engine;
  const engine: typeof double.engine = {
    ...double.engine,
    async infer(inference) {
      if (inference.model !== 'language-id') return infer(inference);
      const seconds = (inference.inputs[0]?.bytes.length ?? 0) / 4 / 16_000;
      judged.push(seconds);
      const share = english(seconds);
      const scores = Float32Array.of(Math.log(share), Math.log(1 - share));
      return { ok: true, value: new Map([['LOG_PROBS', fp32Tensor('LOG_PROBS', scores, [1, 2])]]) };
    },
  };
  const { live } = makeLiveParts({ engine });
  const session = await startSession({ live, detect: true, languages });
  return { session, judged };
}

const audio = (...parts: Float32Array[]): Happening => ({ audio: linear16(joinSamples(...parts)) });
const sure: Judge = () => 0.99;

describe('R3 the language of a live stream', () => {
  it('MUST 66: is detected from two seconds of speech, after a silence of three', async () => {
    const { session, judged } = await startDetecting(sure);
    await session.play(audio(silence(3)));
    expect(checkpointsIn(session.events).at(-1)?.time).toBeGreaterThan(1.5);
    const events = await playFrom(session, [audio(voice(4)), audio(silence(1))]);
    expect(judged).toEqual([2]);
    const types = events.map(({ type }) => type);
    expect(events[0]).toMatchObject({ type: 'ready', language: 'auto' });
    expect(types.indexOf('language')).toBeLessThan(types.indexOf('segment'));
    expect(events.filter(({ type }) => type === 'language')).toEqual([
      { type: 'language', language: 'en', confidence: 0.99 },
    ]);
    expect(events.at(-1)).toMatchObject({ type: 'final', language: 'en', languageConfidence: 0.99 });
  });

  it('refuses a language of another model before any segment', async () => {
    const { session } = await startDetecting(() => 0.02);
    await playFrom(session, [audio(voice(3)), audio(silence(1))]);
    expect(session.refusals).toMatchObject([{ reason: 'misdirected', params: { language: 'es', confidence: 0.98 } }]);
    expect(segmentsIn(session.events)).toEqual([]);
  });

  it('refuses a language outside the list of the request', async () => {
    const { session } = await startDetecting(sure, ['es', 'fr']);
    await playFrom(session, [audio(voice(3)), audio(silence(1))]);
    expect(session.refusals).toMatchObject([{ reason: 'misdirected', params: { language: 'en' } }]);
  });

  it('waits for more speech while a short utterance is uncertain', async () => {
    const { session, judged } = await startDetecting((seconds) => (seconds < 1 ? 0.6 : 0.95));
    const events = await playFrom(session, [audio(voice(0.4), silence(1)), audio(voice(2), silence(1))]);
    expect(judged.length).toBe(2);
    expect(judged[1]).toBeGreaterThan(judged[0] as number);
    expect(segmentsIn(events).map(({ index }) => index)).toEqual([0, 1]);
    expect(session.refusals).toEqual([]);
  });

  it.each<[string, Happening[]]>([
    ['at the end of a clip', [audio(voice(0.3))]],
    ['at a finalize', [audio(voice(0.3), silence(1)), { finalize: 1 }, audio(voice(3))]],
    ['after two seconds', [audio(voice(3))]],
  ])('is refused as uncertain %s', async (_, script) => {
    const { session } = await startDetecting(() => 0.6);
    await playFrom(session, script);
    expect(session.refusals).toMatchObject([
      {
        reason: 'language_uncertain',
        params: { first: 'en', firstConfidence: 0.6, second: 'es', secondConfidence: 0.4 },
      },
    ]);
    expect(segmentsIn(session.events)).toEqual([]);
  });

  it('is never decided by a clip of 100 ms', async () => {
    const { session } = await startDetecting(sure);
    await playFrom(session, [audio(silence(1), voice(0.1), silence(1))]);
    expect(session.refusals).toMatchObject([{ reason: 'language_uncertain' }]);
  });

  it('is none in a stream without speech', async () => {
    const { session, judged } = await startDetecting(sure);
    const events = await playFrom(session, [audio(silence(2)), { finalize: 7 }]);
    expect(events).toContainEqual({ type: 'finalized', id: 7 });
    expect(events.at(-1)).toMatchObject({ type: 'final', language: 'zxx', segments: 0 });
    expect(judged).toEqual([]);
  });

  it('is that of the speech after a clear', async () => {
    const { session, judged } = await startDetecting((seconds) => (seconds < 1 ? 0.6 : 0.95));
    const events = await playFrom(session, [audio(voice(0.5)), { clear: 3 }, audio(voice(3)), audio(silence(1))]);
    expect(events).toContainEqual({ type: 'cleared', id: 3 });
    expect(judged).toEqual([2]);
    expect(events.at(-1)).toMatchObject({ type: 'final', language: 'en' });
  });

  it('gives the same transcript as a stream that names it', async () => {
    const script = [audio(silence(1), voice(3)), audio(silence(1), voice(0.5)), { finalize: 1 }, audio(voice(1))];
    const { session } = await startDetecting(sure);
    const detected = segmentsIn(await playFrom(session, script));
    const named = await startSession({ live: makeLiveParts(createSequenceEngine()).live });
    expect(detected).toEqual(segmentsIn(await playFrom(named, script)));
    expect(detected.length).toBeGreaterThan(1);
  });
});

/** An utterance of `seconds` that has ended. */
function ended(seconds: number) {
  const utterance = createUtterance(0);
  const samples = seconds * 16_000;
  utterance.grow(new Int16Array(samples));
  utterance.close({ ending: 'finalize', samples });
  return utterance;
}

describe('R3 a finalize during whose detection an utterance arrives', () => {
  it.each([
    [0.95, ['utterance', 'finalized', 'utterance']],
    [0.6, ['language_uncertain']],
  ])('follows the language of both utterances: %s', async (second, expected) => {
    const outcome: string[] = [];
    const detections: ((english: number) => void)[] = [];
    const detect = () =>
      new Promise<Result<readonly DetectedLanguage[]>>((resolve) => {
        const of = (language: string, confidence: number) => ({ language, confidence });
        detections.push((english) => resolve(ok([of('en', english), of('es', 1 - english)])));
      });
    const gate = new LanguageGate({
      scribe: {
        utterance: () => void outcome.push('utterance'),
        capture: () => {},
        event: ({ type }) => void outcome.push(type),
      },
      served: ['en'],
      detect,
      onLanguage: () => {},
      onRefusal: ({ reason }) => void outcome.push(reason),
      signal: new AbortController().signal,
    });
    const detection = async (number: number) => {
      await expect.poll(() => detections.length).toBe(number);
      return detections[number - 1] as (english: number) => void;
    };
    gate.utterance(ended(0.7));
    (await detection(1))(0.6);
    // The gate waits for more speech.
    await new Promise(setImmediate);
    gate.event({ type: 'finalized', id: 1 });
    const forced = await detection(2);
    gate.utterance(ended(0.7));
    forced(0.6);
    (await detection(3))(second);
    await gate.opened;
    expect(outcome).toEqual(expected);
  });
});
