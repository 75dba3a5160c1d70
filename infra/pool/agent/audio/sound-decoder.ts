import type { Result } from '../../../../shared/result.ts';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
/** Blocks one after the other, each decoded when it is asked for; a refusal is the last. */
export type Blocks = AsyncGenerator<Result<SoundBlock>>;

/** One recording being decoded. What is unpacked at once stays bounded: by small slices, or frame by frame. */
export interface SoundDecoder {
  /** Most bytes per `push`. */
  readonly sliceBytes: number;
  push(slice: Uint8Array): Blocks;
  finish(): Blocks;
  free(): void;
}
