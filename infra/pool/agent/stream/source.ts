import type { Result } from '../../../../shared/result.ts';
import type { Sound } from '../audio/mono.ts';

/**
 * Start of a source: a byte of the session and the frame that it stands for, counted from the session's
 * first.
 */
export interface Origin {
  readonly position: number;
  readonly frame: number;
}

/** From where another source can go on: it begins at `position` and throws `skip` frames away. */
export interface Place {
  readonly position: number;
  readonly skip: number;
}

/** Turns the bytes of a stream into sound of one channel. Frames are samples of one channel at `rate`. */
export interface Source {
  readonly rate: number;
  /**
   * One chunk as the client sent it, which began at `position`. Refuses with `audio_invalid` what is no sound. The
   * samples are there until the next call of any source.
   */
  push(position: number, audio: Uint8Array): Result<Sound>;
  /** From where on `frame` can be heard again; frames before one that was asked for are forgotten. */
  locate(frame: number): Place;
  free(): void;
}
