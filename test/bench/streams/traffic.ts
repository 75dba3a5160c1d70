// What every stream of the measurement carries, in both directions; both halves and the peer keep to it.

import { limits } from '../../../shared/limits.ts';

/** 16 kHz, 16 bit, one channel, in tenths of a second: what official clients send from a microphone. */
export const FORMAT = { encoding: 'linear16', rate: 16_000, channels: 1 } as const;
export const FRAME_BYTES = 3_200;
export const FRAME_MS = 100;
/** How often an agent says how far it has heard. */
export const HEARD_EVERY = limits.streamHeardMs.value / FRAME_MS;
/** The reference network takes a step of 320 ms, and what it hears may change with each. */
export const INTERIM_EVERY = 3;
/** Somebody who speaks draws breath every three seconds; then a segment is settled. */
export const SEGMENT_EVERY = 30;
/** What a step of the engine double takes, and frames of log probabilities in one. */
export const ENGINE_MS = 10;
export const HOP_FRAMES = 8;

const WORDS = 'set a timer for ten minutes and play some music please'.split(' ');

/**
 * Frames, less than `every`, by which what is said in a stream is ahead of what is said in the first one. People do not
 * all begin and end a sentence at once, and what each end costs must not fall together by the measurement's own doing: all
 * numbers are alike often, whatever `every` is.
 */
export const aheadBy = (stream: number, every: number): number => Math.floor(((stream * 0.618_034) % 1) * every);

/** An `interim` or `segment` for the audio before `frame`. Its `end` tells which frame it answers. */
export function eventAt(frame: number, ahead: number) {
  const end = (frame * FRAME_MS) / 1_000;
  const index = Math.floor((frame + ahead - 1) / SEGMENT_EVERY);
  const first = index * SEGMENT_EVERY - ahead;
  const start = (Math.max(0, first) * FRAME_MS) / 1_000;
  const count = Math.ceil((frame - Math.max(0, first)) / 3);
  const words = WORDS.slice(0, count).map((word, at) => ({
    word,
    start: start + at * 0.3,
    end: start + at * 0.3 + 0.25,
    confidence: 0.9,
  }));
  const said = words.map(({ word }) => word).join(' ');
  const shared = { index, start, end, text: said, words, confidence: 0.9 };
  if ((frame + ahead) % SEGMENT_EVERY !== 0)
    return { type: 'interim', ...shared, stable: Math.max(0, count - 2) } as const;
  return { type: 'segment', ...shared, logProbability: -0.1, ending: 'endpoint' } as const;
}

/** The frame that an event answers. */
export const frameOf = (end: number): number => Math.round((end * 1_000) / FRAME_MS);

/** Frames say which they are, so that a lost, a doubled and a moved one can be told apart. */
export function markFrame(frame: Buffer, stream: number, index: number): void {
  frame.writeUInt32BE(stream, 0);
  frame.writeUInt32BE(index, 4);
}
