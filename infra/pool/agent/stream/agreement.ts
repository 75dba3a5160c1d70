import { joinWords } from '../../../../shared/speech/words.ts';
import type { DecodedSoFar, DecodedWord } from '../asr/decode/decoder.ts';

/** Length of the sound that is decoded again, ms; beyond it the window begins at the last agreed word. */
export const REDECODE_WINDOW_MS = 12_000;

/**
 * Sound without a word behind the last agreed one, ms, in front of which the window begins. Whisper sometimes
 * stops after the first sentence; moving the window's start past that sentence makes it continue.
 */
const UNHEARD_MS = 1_500;

/** Distance of the end of the sound at which the last word may be cut off, ms. */
const CUT_MS = 500;

/** Distance in time at which the same word still is the last agreed one, ms: its times move between decodings. */
const OVERLAP_MS = 600;

const plain = (word: string) => word.toLowerCase().replace(/[^\p{L}\p{N}\p{M}]/gu, '');
const same = (one: DecodedWord, other: DecodedWord) => plain(one.word) === plain(other.word);
/** Reports whether both are there and the same but for case and punctuation, which change with what follows. */
const isSame = (one: DecodedWord | undefined, other: DecodedWord | undefined) =>
  one !== undefined && other !== undefined && same(one, other);

/**
 * LocalAgreement-2 (Macháček et al., 2023): a word is stable once two successive decodings of growing sound begin with
 * the same words up to it. Frames are milliseconds of the utterance.
 */
export function createAgreement() {
  const agreed: DecodedWord[] = [];
  let open: readonly DecodedWord[] = [];
  /** Words behind the agreed ones in the decoding that the next `push` is compared with. */
  let former: readonly DecodedWord[] = [];

  /**
   * Words behind the agreed ones: by their count where the text begins with them, behind the last agreed word where the
   * text has it, by their times otherwise.
   */
  function behind(words: readonly DecodedWord[], from: number): readonly DecodedWord[] {
    const known = agreed.filter(({ startFrame }) => startFrame >= from);
    if (known.every((word, i) => words[i] !== undefined && same(word, words[i]))) return words.slice(known.length);
    const last = agreed.at(-1) as DecodedWord;
    const distance = ({ startFrame }: DecodedWord) => Math.abs(startFrame - last.startFrame);
    const near = words.filter((word) => same(word, last) && distance(word) < OVERLAP_MS);
    const [nearest] = near.sort((one, other) => distance(one) - distance(other));
    if (nearest) return words.slice(words.indexOf(nearest) + 1);
    return words.filter(({ startFrame, endFrame }) => (startFrame + endFrame) / 2 > last.endFrame);
  }

  function state(): DecodedSoFar {
    const words = [...agreed, ...open];
    const sum = words.reduce((total, { confidence }) => total + confidence, 0);
    return {
      words,
      text: joinWords(words.map(({ word }) => word)),
      confidence: words.length > 0 ? sum / words.length : 0,
      stable: agreed.length,
      // The sound may end inside of the last word.
      whole: Math.max(agreed.length, words.length - 1),
    };
  }

  return {
    /** Returns the state after a decoding of the sound `from` to `until`, which makes words stable. */
    push(words: readonly DecodedWord[], from: number, until: number): DecodedSoFar {
      const next = behind(words, from);
      // The sound may end inside of the last word, twice at the same sound.
      const isWhole = ({ endFrame }: DecodedWord, i: number) => i < next.length - 1 || until - endFrame > CUT_MS;
      const cut = next.findIndex((word, i) => !isWhole(word, i));
      const whole = cut < 0 ? next.length : cut;
      let count = 0;
      while (count < whole && isSame(next[count], former[count])) count++;
      agreed.push(...next.slice(0, count));
      former = next.slice(count);
      open = former;
      return state();
    },
    /** Returns the state after a decoding that makes no word stable: one between two pushes, or the last one. */
    show(words: readonly DecodedWord[], from: number): DecodedSoFar {
      open = behind(words, from);
      return state();
    },
    /** Begin of the next decoding when there are `until` ms. */
    from(until: number, before: number): number {
      const last = agreed.at(-1);
      if (!last) return before;
      const isUnheard = open.length === 0 && until - last.endFrame > UNHEARD_MS;
      return isUnheard || until - before > REDECODE_WINDOW_MS ? Math.max(before, last.startFrame) : before;
    },
  };
}
