import { OggVorbisDecoder } from '@wasm-audio-decoders/ogg-vorbis';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { RECORDING_CHANNELS_MAX } from '../../../../shared/speech/wav.ts';
import { type Demuxer, invalid, type MediaItem, type Track } from './demuxer.ts';
import { createOggGuard, oggCrc } from './ogg.ts';
import { decoded, type PacketCodec } from './package-decoder.ts';

/** Longest packet that fits one page: 255 pieces, of which the last one is short. */
const PAGE_PACKET_BYTES = 255 * 255 - 1;
/** Identification header (Vorbis I §4.2.2). */
const IDENTIFICATION_BYTES = 30;
const HEADERS = 3;
/** A comment header without comments (§5.2.1). Tags may hold pictures, and no decoder needs them. */
const noComment = Uint8Array.of(3, ...new TextEncoder().encode('vorbis'), 0, 0, 0, 0, 0, 0, 0, 0, 1);

/** Headers of a stream, as Matroska stores them (RFC 9559 §5.1.4.1.22.3, "Xiph lacing"). */
export function packHeaders(first: Uint8Array, setup: Uint8Array): Uint8Array {
  return new Uint8Array(Buffer.concat([Uint8Array.of(2, first.length, noComment.length), first, noComment, setup]));
}

/** Returns the identification and setup headers. */
function unpackHeaders(config: Uint8Array): readonly [Uint8Array, Uint8Array] | undefined {
  if (config[0] !== HEADERS - 1) return undefined;
  let at = 1;
  const sizes = [0, 0].map(() => {
    let size = 0;
    while (config[at] === 255) size += config[at++] ?? 0;
    return size + (config[at++] ?? 0);
  });
  const [first = 0, comment = 0] = sizes;
  const fits = first >= IDENTIFICATION_BYTES && at + first + comment < config.length;
  return fits ? [config.subarray(at, at + first), config.subarray(at + first + comment)] : undefined;
}

/** Puts each packet on a page of its own (RFC 3533 §6), which is the form that the decoder's package reads. */
function createPager() {
  let pages = 0;
  return (packet: Uint8Array): Uint8Array => {
    const pieces = Math.floor(packet.length / 255) + 1;
    const page = new Uint8Array(27 + pieces + packet.length);
    const view = new DataView(page.buffer);
    page.set(new TextEncoder().encode('OggS'));
    page[5] = pages === 0 ? 2 : 0;
    view.setUint32(6, Math.max(0, pages - HEADERS + 1), true);
    view.setUint32(14, 1, true);
    view.setUint32(18, pages++, true);
    page[26] = pieces;
    page.fill(255, 27, 26 + pieces);
    page[26 + pieces] = packet.length % 255;
    page.set(packet, 27 + pieces);
    view.setUint32(22, oggCrc(page), true);
    return page;
  };
}

/** Vorbis by libvorbis. Its package reads Ogg, so packets of every container get pages again. */
export async function openVorbis({ config, container }: Track): Promise<Result<PacketCodec>> {
  const headers = unpackHeaders(config);
  if (!headers) return no(refuse('audio_invalid', { rule: 'its Vorbis headers are damaged' }));
  const [first, setup] = headers;
  const channels = first[11] ?? 0;
  if (channels === 0 || channels > RECORDING_CHANNELS_MAX) {
    return no(refuse('audio_unsupported', { found: `Vorbis of ${channels} channels in ${container}` }));
  }
  if (setup.length > PAGE_PACKET_BYTES) return no(refuse('audio_invalid', { rule: 'its Vorbis setup is too long' }));
  const decoder = new OggVorbisDecoder();
  await decoder.ready;
  const page = createPager();
  for (const header of [first, noComment, setup]) {
    const read = await decoded(() => decoder.decode(page(header)));
    if (!read.ok) return read;
  }
  return ok({
    decode: async (packet) =>
      packet.length > PAGE_PACKET_BYTES
        ? no<Refusal>(refuse('audio_invalid', { rule: 'a packet is too long' }))
        : decoded(() => decoder.decode(page(packet))),
    // The package holds a page back until the next one begins.
    finish: () => decoded(() => decoder.flush()),
    free: () => decoder.free(),
  });
}

/** Packets of Ogg Vorbis (Vorbis I appendix A). The padding of the last block stays. */
export function createOggVorbisDemuxer(): Demuxer {
  const found: Uint8Array[] = [];
  const headers: Uint8Array[] = [];
  const ogg = createOggGuard((packet) => found.push(packet));
  let packets = 0;

  function* read(): Generator<MediaItem> {
    for (const packet of found.splice(0)) {
      if (headers.length < HEADERS) {
        headers.push(packet);
        const [first, , setup] = headers;
        if (!first || !setup) continue;
        if (first.length !== IDENTIFICATION_BYTES) return yield invalid('its Vorbis headers are damaged');
        const track: Track = { codec: 'vorbis', container: 'Ogg', config: packHeaders(first, setup), skipSeconds: 0 };
        yield { type: 'track', track };
      } else if (packet.length > 0) {
        packets++;
        yield { type: 'packet', packet };
      }
    }
  }

  return {
    *push(bytes) {
      const pages = ogg.push(bytes);
      if (!pages.ok) return yield { type: 'refused', refusal: pages.refusal };
      yield* read();
    },
    *finish() {
      const whole = ogg.finish();
      if (!whole.ok) yield { type: 'refused', refusal: whole.refusal };
      else if (packets === 0) yield invalid('it has no packets of sound');
    },
  };
}
