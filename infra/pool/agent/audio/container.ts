import { no, ok, type Result } from '../../../../shared/result.ts';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
import type { Demuxer, MediaItem } from './demuxer.ts';
import type { PacketCodec } from './package-decoder.ts';
import { openCodec } from './packet-codec.ts';
import type { Blocks, SoundDecoder } from './sound-decoder.ts';

/** Longest accepted delay of an encoder: real ones take up to 0.1 s. A longer edit is played as it was recorded. */
const SKIP_MAX_S = 1;

/** Cuts the first `seconds` off a sequence of blocks. */
function createTrimmer(seconds: number) {
  let left = seconds <= SKIP_MAX_S ? seconds : 0;
  return ({ rate, channels }: SoundBlock): SoundBlock | undefined => {
    const length = channels[0]?.length ?? 0;
    const skip = Math.min(length, Math.round(left * rate));
    left = Math.max(0, left - length / rate);
    return skip === length ? undefined : { rate, channels: channels.map((samples) => samples.subarray(skip)) };
  };
}

/** Decodes a file packet by packet: a packet is at most 120 ms of sound. */
export function openContainer(demuxer: Demuxer): SoundDecoder {
  let codec: PacketCodec | undefined;
  let trim: (block: SoundBlock) => SoundBlock | undefined = (block) => block;

  async function take(item: MediaItem): Promise<Result<SoundBlock | undefined>> {
    if (item.type === 'refused') return no(item.refusal);
    if (item.type === 'track') {
      const opened = await openCodec(item.track);
      if (!opened.ok) return opened;
      codec = opened.value;
      trim = createTrimmer(opened.value.skipSeconds);
      return ok(undefined);
    }
    const block = await codec?.decode(item.packet);
    return block?.ok && block.value ? ok(trim(block.value)) : (block ?? ok(undefined));
  }

  async function* decode(items: Iterable<MediaItem>): Blocks {
    for (const item of items) {
      const block = await take(item);
      if (!block.ok) return yield block;
      if (block.value) yield ok(block.value);
    }
  }

  return {
    sliceBytes: 64 * 1024,
    push: (slice) => decode(demuxer.push(slice)),
    async *finish() {
      let refused = false;
      for await (const block of decode(demuxer.finish())) {
        refused = !block.ok;
        yield block;
      }
      const rest = refused ? undefined : await codec?.finish?.();
      if (rest && !rest.ok) yield rest;
      else if (rest?.value) yield ok(rest.value);
    },
    free() {
      codec?.free();
      demuxer.free?.();
    },
  };
}
