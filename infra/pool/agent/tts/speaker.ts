import type { Result } from '../../../../shared/result.ts';
import type { Dispatcher } from '../engine/dispatch.ts';
import type { SlotRequest } from '../engine/slots.ts';

/** Voice, prosody and urgency of a segment. */
export interface SpeechOptions {
  /** One of the voices of the model; its first one when absent. */
  readonly voice?: string | undefined;
  /** 1 as the voice was taught, 2 twice as fast; 0.5 to 2. */
  readonly rate?: number;
  /** Factor of the natural pitch. */
  readonly pitch?: number;
  /** Class, tenant and deadline in the queue of the engine; by default `batch` without a tenant. */
  readonly place?: Omit<SlotRequest, 'signal'>;
  /** Way to the engine: the share of jobs for a job, by default the dispatcher itself. */
  readonly run?: Dispatcher['run'];
}

/** Turns the text of one segment (a sentence, at most `PROJECT_SEGMENT_CHARACTERS` characters) into sound. */
export interface Speaker {
  readonly model: string;
  /** Hz, 16000. */
  readonly sampleRate: number;
  /**
   * Mono 16-bit PCM without leading or trailing silence beyond 50 ms. Refuses text that has nothing to say
   * (`text_unspeakable`) and engine faults.
   */
  speak(text: string, options: SpeechOptions, signal: AbortSignal): Promise<Result<Int16Array>>;
}
