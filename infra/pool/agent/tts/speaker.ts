import type { Result } from '../../../../shared/result.ts';

/** How a segment is to be said. */
export interface SpeechOptions {
  /** One of the voices of the model; its first one when absent. */
  readonly voice?: string;
  /** 1 as the voice was taught, 2 twice as fast; 0.5 to 2. */
  readonly rate?: number;
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
