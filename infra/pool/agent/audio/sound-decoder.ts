import type { Result } from '../../../../shared/result.ts';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
/** Yields blocks in order, each decoded on demand; a refusal is the last item. */
export type Blocks = AsyncGenerator<Result<SoundBlock>>;

/** One recording being decoded. What is unpacked at once stays bounded: by small slices, or frame by frame. */
export interface SoundDecoder {
  /** Most bytes per `push`. */
  readonly sliceBytes: number;
  push(slice: Uint8Array): Blocks;
  finish(): Blocks;
  free(): void;
}
