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

/** Words of a sequence of tokens. White space divides words; punctuation stays with the word before it. */
export function wordsOfTokens(ids: readonly number[], texts: TokenTexts): TokenWord[] {
  const words: TokenWord[] = [];
  let bytes: number[] = [];
  let first = 0;
  let last = 0;
  const end = () => {
    const word = new TextDecoder().decode(Uint8Array.from(bytes));
    if (bytes.length > 0) words.push({ word, first, last });
    bytes = [];
  };
  for (const [at, id] of ids.entries()) {
    for (const byte of texts[id] ?? []) {
      if (byte === 32 || (byte >= 9 && byte <= 13)) {
        end();
        continue;
      }
      if (bytes.length === 0) first = at;
      last = at;
      bytes.push(byte);
    }
  }
  end();
  return words;
}
