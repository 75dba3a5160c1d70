import { setImmediate } from 'node:timers/promises';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Term } from '../../../../shared/speech/terms.ts';
import type { LinkEvent } from '../../../../shared/stream/link.ts';
import type { Decoded, DecodedSoFar } from '../asr/decode/decoder.ts';
import {
  type CtcRecogniser,
  DECODE_TURN_FRAMES,
  placeWords,
  type Scores,
  segmentsOf,
  sumBest,
} from '../asr/segment.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import { ANSWER_EVENT_BYTES } from '../settings/limits.ts';
import type { Closing } from './utterance.ts';

export type Interim = Extract<LinkEvent, { type: 'interim' }>;
export type LiveSegment = Extract<LinkEvent, { type: 'segment' }>;

/** A6: how sure an interim must be. */
const SURE = 0.8;

/**
 * A6: whether an interim is worth sending: its confidence is over 0.8, or more of its words than of the last one sent
 * can no longer change; and it says something else than that one did.
 */
export function isWorth(
  next: Pick<Interim, 'text' | 'confidence' | 'stable'>,
  last: Pick<Interim, 'text' | 'stable'> | undefined,
) {
  if (next.text === '') return false;
  const grew = next.stable > (last?.stable ?? 0);
  return (next.confidence > SURE || grew) && (grew || next.text !== last?.text);
}

/** No word takes more characters of JSON beside its own, of which each takes six at most. */
const WORD_CHARACTERS = 128;

/** An interim that would fill much of an event. Written down only when it may be, since it is written down to be sent. */
function isLong(event: Interim): boolean {
  const most = ANSWER_EVENT_BYTES / 4;
  // The text holds each word once, and `words` once more.
  const atMost = (event.words.length + 2) * WORD_CHARACTERS + 12 * event.text.length;
  return atMost > most && JSON.stringify(event).length > most;
}

/** Interims of one utterance that begins at `start`, seconds of the session. */
export function createInterims(start: number, frameSeconds: number) {
  let last: Interim | undefined;

  return {
    /** Returns the interim of what is decoded, when it is worth sending; `samples` of the utterance are there. */
    next(
      decoded: DecodedSoFar,
      index: number,
      samples: number,
    ): { event: Interim | undefined; lastWordEnd: number | undefined } {
      const words = placeWords({ words: decoded.words, start, end: start + samples / MODEL_RATE, frameSeconds });
      const event: Interim = {
        type: 'interim',
        index,
        start: words[0]?.start ?? start,
        end: words.at(-1)?.end ?? start,
        text: decoded.text,
        words,
        stable: decoded.stable,
        whole: decoded.whole,
        confidence: decoded.confidence,
      };
      const lastWordEnd = words.at(-1)?.end;
      if (!isWorth(event, last) || isLong(event)) return { event: undefined, lastWordEnd };
      last = event;
      return { event, lastWordEnd };
    },
  };
}

/**
 * The words of one utterance while its scores come in. `start` is the place of its first sample, counted at 16 kHz.
 */
export function createWords({ decoder, frameSeconds }: CtcRecogniser, start: number, terms?: readonly Term[]) {
  let decoding = decoder.begin(terms);
  /** Kept because an utterance that became too long is decoded again up to its cut. */
  const scores: Scores[] = [];
  let frames = 0;
  const startSeconds = start / MODEL_RATE;
  const interims = createInterims(startSeconds, frameSeconds);

  function place(decoded: Decoded, samples: number) {
    return { words: decoded.words, start: startSeconds, end: startSeconds + samples / MODEL_RATE, frameSeconds };
  }

  /** The rows of the first `count` frames. */
  function rows(count: number): Scores[] {
    let left = count;
    const kept: Scores[] = [];
    for (const { logProbs, frames: own, tokens } of scores) {
      const take = Math.min(own, left);
      left -= take;
      if (take > 0) kept.push({ logProbs: logProbs.subarray(0, take * tokens), frames: take, tokens });
    }
    return kept;
  }

  async function decodeAgain(kept: readonly Scores[]) {
    decoding = decoder.begin(terms);
    let turn = 0;
    for (const { logProbs, frames: own } of kept) {
      decoding.push(logProbs, own);
      turn += own;
      if (turn < DECODE_TURN_FRAMES) continue;
      turn = 0;
      await setImmediate();
    }
  }

  return {
    /** Refuses with `engine_failed` what are no probabilities. */
    push(next: Scores): Result<undefined> {
      if (!Number.isFinite(sumBest(next)))
        return no(refuse('engine_failed', undefined, 'engine answer: not probabilities'));
      scores.push(next);
      frames += next.frames;
      decoding.push(next.logProbs, next.frames);
      return ok(undefined);
    },
    /** Seconds of the session up to which scores came in. */
    until: () => startSeconds + frames * frameSeconds,
    /** Returns the current interim when it is worth sending; `samples` of the utterance are there. */
    interim: (index: number, samples: number) => interims.next(decoding.partial(), index, samples),
    /** All scores of the utterance's samples are there. */
    async finish({ ending, samples }: Closing, decoded: number, index: number): Promise<Result<LiveSegment[]>> {
      // Words that were cut off at its end begin the next utterance.
      const own = samples < decoded ? Math.min(frames, Math.round(samples / MODEL_RATE / frameSeconds)) : frames;
      const kept = rows(own);
      if (own < frames) await decodeAgain(kept);
      const sum = kept.reduce((total, row) => total + sumBest(row), 0);
      const logProbability = own > 0 ? Math.min(0, sum / own) : 0;
      const segments = segmentsOf({ ...place(decoding.finish(), samples), logProbability }, index);
      return segments.ok ? ok(segments.value.map((segment) => ({ ...segment, ending }))) : segments;
    },
  };
}
