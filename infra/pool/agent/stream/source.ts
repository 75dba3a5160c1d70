import type { Result } from '../../../../shared/result.ts';
import type { Sound } from '../audio/mono.ts';

/**
 * Start of a source: a byte of the session and the frame that it stands for, counted from the session's
 * first.
 */
export interface Origin {
  readonly position: number;
  readonly frame: number;
  /** Number of the track, where the container describes it before `position` only. */
  readonly track?: number | undefined;
}

/** A point where another source can continue: it begins at `position` and discards `skip` frames. */
export interface ResumePoint {
  readonly position: number;
  readonly skip: number;
  /** As in `Origin`. */
  readonly track?: number | undefined;
}

/** Turns the bytes of a stream into sound of one channel. Frames are samples of one channel at `rate`. */
export interface Source {
  readonly rate: number;
  /**
   * Decodes one chunk as the client sent it, which began at `position`. Refuses with `audio_invalid` and
   * `audio_live_unsupported`. The samples are there until the next call of any source.
   */
  push(position: number, audio: Uint8Array): Result<Sound>;
  /** Ends the stream. Refuses with `audio_truncated` one that ends inside an element. */
  end?(): Result<undefined>;
  /** From where on `frame` can be heard again; frames before one that was asked for are forgotten. */
  locate(frame: number): ResumePoint;
  free(): void;
}
