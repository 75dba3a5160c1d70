import { splitWord } from '../../../../../shared/speech/words.ts';

/** Spelling of the token file: text with `▁` for a space (SentencePiece), or byte-level BPE (GPT-2, Whisper). */
export const tokenForms = ['pieces', 'bytes'] as const;
export type TokenForm = (typeof tokenForms)[number];

/**
 * Bytes of each token by number: one for `<0xC3>`, the byte fallback of SentencePiece; none for a control token such as
 * `<blank>` or `<|endoftext|>`.
 */
export type TokenTexts = readonly Uint8Array[];

/** Printable bytes stand for themselves in byte-level BPE; the others are numbered from U+0100. */
function byteAlphabet(): ReadonlyMap<string, number> {
  const printable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
  const alphabet = new Map<string, number>();
  let others = 0;
  for (let byte = 0; byte < 256; byte++)
    alphabet.set(String.fromCodePoint(printable(byte) ? byte : 256 + others++), byte);
  return alphabet;
}

/** Reads the lines of a token file. Throws when a token has a character that its form does not know. */
export function readTokenTexts(lines: readonly string[], form: TokenForm): TokenTexts {
  const alphabet = byteAlphabet();
  const spell: Readonly<Record<TokenForm, (token: string) => Uint8Array>> = {
    pieces: (token) => new TextEncoder().encode(token.replaceAll('▁', ' ')),
    bytes: (token) =>
      Uint8Array.from(token, (character) => {
        const byte = alphabet.get(character);
        if (byte === undefined) throw new Error(`${JSON.stringify(token)} is no byte-level token`);
        return byte;
      }),
  };
  return lines.map((token) => {
    const byte = /^<0x([0-9A-F]{2})>$/.exec(token)?.[1];
    if (byte !== undefined) return Uint8Array.of(Number.parseInt(byte, 16));
    return /^<.+>$/.test(token) ? new Uint8Array() : spell[form](token);
  });
}

/** A word of tokens `first` to `last`. */
export interface TokenWord {
  readonly word: string;
  readonly first: number;
  readonly last: number;
}

/**
 * Words of a sequence of tokens. White space divides words; punctuation stays with the word before it. Where a script has
 * no spaces, each character is a word.
 */
export function wordsOfTokens(ids: readonly number[], texts: TokenTexts): TokenWord[] {
  const words: TokenWord[] = [];
  let bytes: number[] = [];
  /** Place of the token of each byte. */
  let places: number[] = [];
  const end = () => {
    let taken = 0;
    const last = places.length - 1;
    for (const word of bytes.length > 0 ? splitWord(new TextDecoder().decode(Uint8Array.from(bytes))) : []) {
      // Broken characters decode to longer ones.
      const placeOf = (byte: number) => places[Math.min(byte, last)] as number;
      const length = Buffer.byteLength(word);
      words.push({ word, first: placeOf(taken), last: placeOf(taken + length - 1) });
      taken += length;
    }
    [bytes, places] = [[], []];
  };
  for (const [at, id] of ids.entries()) {
    for (const byte of texts[id] ?? []) {
      if (byte === 32 || (byte >= 9 && byte <= 13)) {
        end();
        continue;
      }
      bytes.push(byte);
      places.push(at);
    }
  }
  end();
  return words;
}
