import { FLACDecoder } from '@wasm-audio-decoders/flac';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { RECORDING_CHANNELS_MAX, RECORDING_RATE_MAX_HZ } from '../../../../shared/speech/wav.ts';
import { createFlacFrames, readStreamInfo, STREAMINFO_BYTES, type StreamInfo } from './flac-frames.ts';
import { createOggGuard } from './ogg.ts';
import { blocksOf, decoded, nothingDecoded, sampleCount } from './package-decoder.ts';
import type { Blocks, SoundDecoder } from './sound-decoder.ts';

const SLICE_BYTES = 4_096;

function judge({ rate, channels, bits }: StreamInfo): Result<undefined> {
  const fits = channels <= RECORDING_CHANNELS_MAX && rate <= RECORDING_RATE_MAX_HZ;
  return fits
    ? ok(undefined)
    : no(refuse('audio_unsupported', undefined, `flac ${rate} Hz, ${channels} x ${bits} bit`));
}

/** The frames of one stream, decoded one at a time: a constant one of 14 bytes stands for up to 65,535 samples. */
async function openFrames() {
  const decoder = new FLACDecoder();
  await decoder.ready;
  let samples = 0;
  let begun = false;
  return {
    async *decode(info: StreamInfo, frames: readonly Uint8Array[]): Blocks {
      if (!begun) {
        const fits = judge(info);
        if (!fits.ok) return yield fits;
        await decoded(() => decoder.decodeFrames([info.bytes]));
      }
      begun = true;
      for (const frame of frames) {
        const block = await decoded(() => decoder.decodeFrames([frame]));
        samples += sampleCount(block);
        yield* blocksOf(block);
      }
    },
    samples: () => samples,
    free: () => decoder.free(),
  };
}

/** Refuses what has fewer samples than its header counts, and what has none. */
function* judgeEnd(samples: number, total = 0): Generator<Result<never>> {
  if (samples < total) yield no(refuse('audio_truncated', undefined, `flac ${samples} of ${total} samples`));
  else if (samples === 0) yield nothingDecoded;
}

/** Native FLAC: our own framing, libFLAC for the frames. */
async function openNative(): Promise<SoundDecoder> {
  const frames = await openFrames();
  const framer = createFlacFrames();

  async function* decode(found: Result<Uint8Array[]>): Blocks {
    if (!found.ok) return yield found;
    const info = framer.info();
    if (info && found.value.length > 0) yield* frames.decode(info, found.value);
  }

  return {
    sliceBytes: SLICE_BYTES,
    push: (slice) => decode(framer.push(slice)),
    async *finish() {
      for await (const block of decode(framer.finish())) {
        yield block;
        if (!block.ok) return;
      }
      yield* judgeEnd(frames.samples(), framer.info()?.total);
    },
    free: frames.free,
  };
}

/**
 * Offset of STREAMINFO in the first packet (RFC 9639 §10.1): behind `0x7F FLAC`, versions, a count, `fLaC`, a
 * header.
 */
const OGG_INFO_AT = 17;

/** FLAC in Ogg: the first packet has the header, and each packet with a sync code is one frame. */
async function openInOgg(): Promise<SoundDecoder> {
  const frames = await openFrames();
  let info: StreamInfo | undefined;
  const found: Uint8Array[] = [];
  const ogg = createOggGuard((packet) => {
    if (!info && packet.length >= OGG_INFO_AT + STREAMINFO_BYTES) {
      info = readStreamInfo(packet.slice(OGG_INFO_AT, OGG_INFO_AT + STREAMINFO_BYTES));
    } else if (packet[0] === 0xff) found.push(packet);
  });
  return {
    sliceBytes: SLICE_BYTES,
    async *push(slice) {
      const pages = ogg.push(slice);
      if (!pages.ok) return yield pages;
      if (info && found.length > 0) yield* frames.decode(info, found.splice(0));
    },
    async *finish() {
      const whole = ogg.finish();
      if (!whole.ok) return yield whole;
      yield* judgeEnd(frames.samples(), info?.total);
    },
    free: frames.free,
  };
}

/** FLAC by libFLAC. */
export const openFlac = (head: Uint8Array): Promise<SoundDecoder> => (head[0] === 0x66 ? openNative() : openInOgg());
