import { FLACDecoder } from '@wasm-audio-decoders/flac';
import { limits } from '../../../../shared/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
import type { SoundDecoder } from './decode.ts';
import { createFlacFrames, type StreamInfo } from './flac-frames.ts';
import { createOggGuard } from './ogg.ts';
import { decoded, nothingDecoded, sampleCount } from './package-decoder.ts';

/** A constant frame of 14 bytes stands for up to 65,535 samples; a slice unpacks to some ten MB at most. */
const SLICE_BYTES = 256;

function judge({ rate, channels, bits }: StreamInfo): Result<undefined> {
  const fits = channels <= limits.audioChannels.value && rate <= limits.audioRateMax.value;
  return fits
    ? ok(undefined)
    : no(refuse('audio_unsupported', undefined, `flac ${rate} Hz, ${channels} x ${bits} bit`));
}

/** Native FLAC: our own framing, libFLAC for the frames. */
async function openNative(): Promise<SoundDecoder> {
  const decoder = new FLACDecoder();
  await decoder.ready;
  const framer = createFlacFrames();
  let samples = 0;
  let begun = false;

  async function decodeFrames(frames: Result<Uint8Array[]>): Promise<Result<SoundBlock | undefined>> {
    if (!frames.ok) return frames;
    const info = framer.info();
    if (!info || frames.value.length === 0) return ok(undefined);
    if (!begun) {
      const fits = judge(info);
      if (!fits.ok) return fits;
      await decoded(() => decoder.decodeFrames([info.bytes]));
    }
    begun = true;
    const block = await decoded(() => decoder.decodeFrames(frames.value));
    samples += sampleCount(block);
    return block;
  }

  return {
    sliceBytes: SLICE_BYTES,
    push: (slice) => decodeFrames(framer.push(slice)),
    async finish() {
      const total = framer.info()?.total ?? 0;
      const rest = await decodeFrames(framer.finish());
      if (!rest.ok) return rest;
      if (samples < total) return no(refuse('audio_truncated', undefined, `flac ${samples} of ${total} samples`));
      return samples > 0 ? rest : nothingDecoded;
    },
    free: () => decoder.free(),
  };
}

/** FLAC in Ogg, where the pages carry the framing. */
async function openInOgg(): Promise<SoundDecoder> {
  const decoder = new FLACDecoder();
  await decoder.ready;
  const ogg = createOggGuard();
  let samples = 0;
  return {
    sliceBytes: SLICE_BYTES,
    async push(slice) {
      const pages = ogg.push(slice);
      if (!pages.ok) return pages;
      const block = await decoded(() => decoder.decode(slice));
      samples += sampleCount(block);
      return block;
    },
    async finish() {
      const whole = ogg.finish();
      if (!whole.ok) return whole;
      const rest = await decoded(() => decoder.flush());
      samples += sampleCount(rest);
      return samples > 0 ? (rest.ok ? rest : ok(undefined)) : nothingDecoded;
    },
    free: () => decoder.free(),
  };
}

/** FLAC by libFLAC. */
export const openFlac = (head: Uint8Array): Promise<SoundDecoder> => (head[0] === 0x66 ? openNative() : openInOgg());
