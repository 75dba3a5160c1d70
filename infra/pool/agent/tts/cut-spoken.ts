/** A piece of spoken text, and how long to be silent behind it. */
export interface Piece {
  readonly text: string;
  readonly pauseMs: number;
}

const PAUSES: Readonly<Record<string, number>> = { '.': 250, '?': 250, ',': 120 };
const BREATH_MS = 60;
/** Places to cut, best first. */
const PLACES = [/[.?](?= )/g, /,(?= )/g, / /g];
/** A cut before this share of the length would leave a splinter. */
const EARLIEST = 0.4;

/** Text as `spellOut` gives it, in pieces of at most `most` characters: as few as can be, cut where a speaker pauses. */
export function cutSpoken(text: string, most: number): Piece[] {
  const pieces: Piece[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const at = rest.length <= most ? rest.length : findCut(rest, most);
    const piece = rest.slice(0, at).trim();
    rest = rest.slice(at).trim();
    if (/[a-z]/.test(piece)) {
      pieces.push({ text: piece, pauseMs: rest === '' ? 0 : (PAUSES[piece.at(-1)!] ?? BREATH_MS) });
    }
  }
  return pieces;
}

function findCut(text: string, most: number): number {
  const window = text.slice(0, most + 1);
  for (const place of PLACES) {
    let last = 0;
    for (const { index } of window.matchAll(place)) if (index < most) last = index + 1;
    if (last >= most * EARLIEST) return last;
  }
  return most;
}
