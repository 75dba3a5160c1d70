// Plain text → blocks (paragraphs) → segments (sentences). Pure, without tables of the runtime: every runtime version cuts
// the same text at the same places, so a repeated job makes the same segments.

/**
 * Longest segment: half a minute of speech, which a light voice makes at once; longer sentences are cut at a
 * pause.
 */
export const PROJECT_SEGMENT_CHARACTERS = 400;

/** Abbreviations that end in a full stop but no sentence, in lower case without the last stop. */
const ABBREVIATIONS: ReadonlySet<string> = new Set(
  (
    'mr mrs ms dr prof st sr jr rev hon gen col capt lt sgt maj gov sen rep pres vs etc eg e.g ie i.e cf al approx dept ' +
    'est fig inc ltd co corp no nos vol pp ed eds jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri ' +
    'bzw usw z.b d.h u.a ca nr hr fr str abb evtl ggf inkl vgl zzgl mme mlle m.m av p.ex sra srta ud uds'
  ).split(' '),
);

/** End of a sentence, with closing quotes and brackets. */
const END = /([.!?…]+|[。！？]+)["'”’»›)\]」』]*/gu;
const FULL_WIDTH = /^[。！？]/u;
/** The last word before a full stop, with stops inside it. */
const LAST_WORD = /[\p{L}\p{N}.]+$/u;
/** German days are ordinals. */
const MONTH = /^(Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)/;
/** A word longer than this is no abbreviation. */
const LAST_WORD_MAX = 24;

/** Splits a text at blank lines into blocks, in order. Each has at least one segment. */
export function splitText(text: string, most: number = PROJECT_SEGMENT_CHARACTERS): string[][] {
  return text
    .replace(/\r\n?/g, '\n')
    .split(/\n(?:[^\S\n]*\n)+/)
    .map((block) => splitBlock(block, most))
    .filter((segments) => segments.length > 0);
}

/** Sentences of one paragraph; a longer one than `most` characters is cut where a speaker would pause. */
export function splitBlock(block: string, most: number = PROJECT_SEGMENT_CHARACTERS): string[] {
  const text = tidy(block);
  const segments: string[] = [];
  let from = 0;
  const take = (to: number) => {
    const sentence = text.slice(from, to).trim();
    if (sentence !== '') segments.push(...cutLong(sentence, most));
    from = to;
  };
  for (const found of text.matchAll(END)) {
    const end = found.index + found[0].length;
    if (endsHere(text, from, found)) take(end);
  }
  take(text.length);
  return segments;
}

/** Characters behind a mark that show a name of a month, and a lower-case letter behind a quote. */
const MONTH_CHARACTERS = 10;
const LETTER_CHARACTERS = 2;

/** Returns the length of the complete sentences of a text that grows: enough of the next one is there to be sure. */
export function completeLength(text: string): number {
  const line = text.replace(/\s/gu, ' ');
  let length = 0;
  for (const found of line.matchAll(END)) {
    const end = found.index + found[0].length;
    const needed = /\d$/u.test(line.slice(length, found.index)) ? MONTH_CHARACTERS : LETTER_CHARACTERS;
    if (line.slice(end).trim().length < needed) break;
    if (endsHere(line, length, found)) length = end;
  }
  return length;
}

/** Returns one line in a canonical spelling (Unicode NFC, single spaces). */
export const tidy = (text: string): string => text.normalize('NFC').replace(/\s+/gu, ' ').trim();

/** Reports whether a sentence that begins at `from` ends at the mark. */
function endsHere(text: string, from: number, { index: start, 0: mark }: RegExpExecArray): boolean {
  const end = start + mark.length;
  if (FULL_WIDTH.test(mark)) return true;
  if (end < text.length && text[end] !== ' ') return false;
  const next = text.slice(end + 1, end + 3);
  // No sentence begins with a lower-case letter, so one may continue after dots.
  if (/^["'“‘«‹(]?\p{Ll}/u.test(next)) return false;
  if (mark[0] !== '.' || mark.startsWith('..')) return true;
  const word = LAST_WORD.exec(text.slice(Math.max(from, start - LAST_WORD_MAX), start))?.[0] ?? '';
  if (/^\p{L}$/u.test(word)) return false;
  // `1. Introduction` and `3. Oktober`: an ordinal.
  if (/^\d{1,2}$/.test(word)) return start - from > word.length && !MONTH.test(text.slice(end + 1, end + 10));
  return !ABBREVIATIONS.has(word.toLowerCase());
}

/** Pauses of a speaker, best first; each is found behind its sign. */
const PAUSES = [/[;:](?=\s|$)|[；：]/gu, /,(?=\s|$)|[、，]/gu, /\s[–—-](?=\s)/gu, /\s/gu];
/** A cut before this share of the length would leave a splinter. */
const EARLIEST = 0.4;

function cutLong(sentence: string, most: number): string[] {
  const parts: string[] = [];
  let rest = sentence;
  while (rest.length > most) {
    const at = findPause(rest, most);
    const part = rest.slice(0, at).trim();
    if (part !== '') parts.push(part);
    rest = rest.slice(at).trim();
  }
  if (rest !== '') parts.push(rest);
  return parts;
}

/** Returns the best cut in 1 to `most` characters. */
function findPause(text: string, most: number): number {
  const window = text.slice(0, most);
  for (const pause of PAUSES) {
    let last = 0;
    for (const found of window.matchAll(pause)) last = found.index + found[0].length;
    if (last >= Math.max(1, most * EARLIEST)) return last;
  }
  // A word longer than the limit. Marks stay with their letters, and surrogate halves together.
  let at = most;
  while (at > 1 && /^(?:\p{M}|\u200d|[\udc00-\udfff])/u.test(text.slice(at, at + 2))) at -= 1;
  return at > 1 ? at : most;
}
