import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
import type { Blocks } from './sound-decoder.ts';

/** Decodes the packets of one track. */
export interface PacketCodec {
  decode(packet: Uint8Array): Promise<Result<SoundBlock | undefined>>;
  /** Returns sound that the decoder held back. */
  finish?(): Promise<Result<SoundBlock | undefined>>;
  free(): void;
}

/** Result of the decoders of the wasm-audio-decoders family. */
interface Decoded {
  readonly channelData: Float32Array[];
  readonly samplesDecoded: number;
  readonly sampleRate: number;
}

/**
 * Runs one call of a decoder package. They decode through damage and throw on what they cannot parse at all, so an
 * exception here is an answer about the file, not a bug.
 */
export async function decoded(run: () => Decoded | Promise<Decoded>): Promise<Result<SoundBlock | undefined>> {
  try {
    const { channelData, samplesDecoded, sampleRate } = await run();
    if (samplesDecoded <= 0) return ok(undefined);
    // Trimming at the end of a stream shortens the count and not always the arrays.
    return ok({ rate: sampleRate, channels: channelData.map((samples) => samples.subarray(0, samplesDecoded)) });
  } catch (cause) {
    return no(refuse('audio_invalid', { rule: 'its frames are damaged' }, cause instanceof Error ? cause.name : ''));
  }
}

export const sampleCount = (block: Result<SoundBlock | undefined>): number =>
  block.ok ? (block.value?.channels[0]?.length ?? 0) : 0;

/** One answer of a decoder as blocks: a block, a refusal, or none. */
export async function* blocksOf(decoded: Result<SoundBlock | undefined>): Blocks {
  if (!decoded.ok) yield decoded;
  else if (decoded.value) yield ok(decoded.value);
}

export const nothingDecoded = no(refuse('audio_invalid', { rule: 'no frame could be decoded' }));
