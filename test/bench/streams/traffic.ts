// Traffic of every measured stream, in both directions, common to both halves and the peer.

import { STREAM_HEARD_MS } from '../../../infra/pool/agent/stream/acknowledgements.ts';

/** 16 kHz, 16 bit, one channel, in tenths of a second: what official clients send from a microphone. */
export const FORMAT = { encoding: 'linear16', rate: 16_000, channels: 1 } as const;
export const FRAME_BYTES = 3_200;
export const FRAME_MS = 100;
/** Frames between two acknowledgements of an agent. */
export const HEARD_EVERY = STREAM_HEARD_MS / FRAME_MS;
/** The reference network takes a step of 320 ms, and what it hears may change with each. */
export const INTERIM_EVERY = 3;
/** Frames between two segments: a speaker breathes every three seconds. */
export const SEGMENT_EVERY = 30;
/** Step time of the engine double, ms, and frames of log probabilities in a step. */
export const ENGINE_MS = 10;
export const HOP_FRAMES = 8;

const WORDS = 'set a timer for ten minutes and play some music please'.split(' ');

/**
 * Returns the offset in frames, below `every`, of a stream's events against the first stream's. Speakers do
 * not begin and end sentences at once, and the cost of ends must not coincide artificially: offsets are
 * evenly distributed for any `every`.
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

/**
 * Marks a frame with its stream and number, so that lost, duplicated and reordered frames are
 * distinguishable.
 */
export function markFrame(frame: Buffer, stream: number, index: number): void {
  frame.writeUInt32BE(stream, 0);
  frame.writeUInt32BE(index, 4);
}
