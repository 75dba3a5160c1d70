import { toCues } from './cues.ts';
import type { Segment } from './transcript.ts';

/** `HH:MM:SS` plus milliseconds after `separator`. Hours grow past 99, as both formats allow. */
function clock(seconds: number, separator: ',' | '.'): string {
  const whole = Math.round(seconds * 1_000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const milliseconds = String(whole % 1_000).padStart(3, '0');
  return `${two(whole / 3_600_000)}:${two((whole / 60_000) % 60)}:${two((whole / 1_000) % 60)}${separator}${milliseconds}`;
}

/** Escapes the text of a cue: an empty line would end the cue, and `-->` would read as a timing line. */
const cueText = (text: string) =>
  text
    .replace(/\s*\n\s*/g, '\n')
    .replaceAll('-->', '->')
    .trim();

/** SubRip: numbered cues, comma before the milliseconds. No segments give an empty file. */
export function renderSrt(segments: readonly Segment[]): string {
  return toCues(segments)
    .map(
      ({ start, end, text }, index) =>
        `${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${cueText(text)}\n\n`,
    )
    .join('');
}

/** WebVTT (W3C, 2019): header line, then cues; `&` and `<` start markup in cue text and are escaped. */
export function renderVtt(segments: readonly Segment[]): string {
  const cues = toCues(segments).map(
    ({ start, end, text }) => `${clock(start, '.')} --> ${clock(end, '.')}\n${escapeCue(cueText(text))}\n\n`,
  );
  return `WEBVTT\n\n${cues.join('')}`;
}

const escapeCue = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
