import type { endings } from '../../../../shared/stream/link.ts';
import { UNIT_SAMPLES } from '../asr/vad/detect.ts';
import { SAMPLE_SCALE } from './tape.ts';

export type UtteranceEnd = (typeof endings)[number];

/** Why it ended, and how many of its samples are its own: those behind them begin the next utterance. */
export interface Closing {
  readonly ending: UtteranceEnd;
  readonly samples: number;
}

/** A window of an utterance, as its model takes it. */
export interface Window {
  readonly samples: Float32Array;
  readonly last: boolean;
}

/** Samples of a window, and from the begin of one to that of the next. */
export interface WindowShape {
  readonly windowSamples: number;
  readonly hopSamples: number;
}

/**
 * One utterance of a live stream, 16 kHz. It grows during speech and stores its samples until it is
 * recognised, so that its sequence can be sent again at any time. One reader.
 */
export interface LiveUtterance {
  /** Place of its first sample in the session, counted at 16 kHz. */
  readonly start: number;
  /** Adds the next unit, which stays unchanged until `release`. */
  grow(unit: Int16Array): void;
  close(closing: Closing): void;
  /** Marks the utterance as no longer wanted. */
  discard(): void;
  /** Frees its samples. */
  release(): void;
  released(): boolean;
  samples(): number;
  closing(): Closing | undefined;
  discarded(): boolean;
  /**
   * Window `number`, once it is known whether it is the last one: one with nothing behind it may yet be. `undefined`
   * until then. Its samples lie in `scratch`, if that is given.
   */
  window(number: number, shape: WindowShape, scratch?: Float32Array): Window | undefined;
  /** Samples `from` to `to` of those that it has, in memory of their own. */
  read(from: number, to: number): Float32Array;
  /** Whether `window` has that one. */
  has(number: number, shape: WindowShape): boolean;
  /** Calls back once when it has that window or is discarded; only the last caller. */
  whenReady(number: number, shape: WindowShape, notify: () => void): void;
}

export function createUtterance(start: number): LiveUtterance {
  /** Each of `UNIT_SAMPLES` but the last one, which may be shorter. */
  let units: Int16Array[] = [];
  let total = 0;
  let closing: Closing | undefined;
  let discarded = false;
  let released = false;
  /** Number of samples that the reader waits for. */
  let wanted = Number.POSITIVE_INFINITY;
  let onReady = () => {};

  const has = (samples: number) => closing !== undefined || total > samples;

  function wake() {
    if (!discarded && !has(wanted)) return;
    const notify = onReady;
    onReady = () => {};
    notify();
  }

  function read(from: number, to: number, scratch?: Float32Array): Float32Array {
    const out = scratch ? scratch.subarray(0, to - from) : new Float32Array(to - from);
    for (let at = from; at < to; ) {
      const unit = units[Math.floor(at / UNIT_SAMPLES)] as Int16Array;
      const inside = at % UNIT_SAMPLES;
      const end = Math.min(unit.length, inside + to - at);
      for (let i = inside; i < end; i++) out[at - from + i - inside] = (unit[i] as number) * SAMPLE_SCALE;
      at += end - inside;
    }
    return out;
  }

  return {
    start,
    grow(unit) {
      units.push(unit);
      total += unit.length;
      wake();
    },
    close(how) {
      closing = how;
      wake();
    },
    discard() {
      discarded = true;
      wake();
    },
    release() {
      released = true;
      units = [];
    },
    released: () => released,
    samples: () => total,
    closing: () => closing,
    discarded: () => discarded,
    window(number, { windowSamples, hopSamples }, scratch) {
      const from = number * hopSamples;
      if (total > from + windowSamples) return { samples: read(from, from + windowSamples, scratch), last: false };
      return closing && { samples: read(Math.min(from, total), total, scratch), last: true };
    },
    read,
    has: (number, { windowSamples, hopSamples }) => has(number * hopSamples + windowSamples),
    whenReady(number, { windowSamples, hopSamples }, notify) {
      wanted = number * hopSamples + windowSamples;
      onReady = notify;
      wake();
    },
  };
}
