import { OpusDecoder } from 'opus-decoder';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Encoding, StreamFormat } from '../../../../shared/stream/format.ts';
import type { Track } from '../audio/demuxer.ts';
import { joinSamples } from '../audio/join.ts';
import { MODEL_RATE, mixDown } from '../audio/mono.ts';
import { openAacTrack } from '../audio/packet-codec.ts';
import {
  type ContainerItem,
  type ContainerReader,
  createAdtsReader,
  createWebmReader,
  liveRefusal,
} from './container-items.ts';
import { createPageReader } from './ogg-pages.ts';
import type { Origin, ResumePoint, Source } from './source.ts';

/**
 * Sound in one message of a container: 64 KiB of the thinnest speech codecs. Silence unpacks to an hour, in one
 * turn of the event loop.
 */
const STREAM_UNPACK_S = 120;

/**
 * Seconds after which a decoder that begins in the middle sounds like one that did not: two frames of AAC at 8 kHz. Opus
 * differs by up to 0.15 of full scale after the 80 ms of RFC 7845 §4.6, and by 0.004 after 400 ms.
 */
const PREROLL_S = { opus: 0.4, aac: 0.256 } as const;

const damaged = (rule: string): Result<never> => no(refuse('audio_invalid', { rule }));

/** Decodes one packet to one channel. */
interface PacketDecoder {
  readonly prerollSeconds: number;
  decode(packet: Uint8Array): Result<Float32Array>;
  /** Opens the track that a container describes. */
  open(track: Track): Result<undefined>;
  free(): void;
}

/** Opus by libopus, which decodes to the rate of the models by itself. */
async function createOpusPackets(channels: 1 | 2): Promise<PacketDecoder> {
  const decoder = new OpusDecoder({
    sampleRate: MODEL_RATE,
    channels,
    streamCount: 1,
    coupledStreamCount: channels - 1,
    channelMappingTable: channels === 2 ? [0, 1] : [0],
  });
  await decoder.ready;
  return {
    prerollSeconds: PREROLL_S.opus,
    open: () => ok(undefined),
    decode(packet) {
      try {
        const { channelData, samplesDecoded, errors } = decoder.decodeFrame(packet);
        if (errors.length > 0 || samplesDecoded <= 0) return damaged('a packet is not Opus');
        return ok(mixDown(channelData.map((samples) => samples.subarray(0, samplesDecoded))));
      } catch {
        return damaged('a packet is not Opus');
      }
    },
    free: () => decoder.free(),
  };
}

/** AAC-LC at the rate of the stream, which its header must have. */
function createAacPackets(rate: number): PacketDecoder {
  let decode: ReturnType<typeof openAacTrack> = damaged('it does not begin with a header');
  return {
    prerollSeconds: PREROLL_S.aac,
    open(track) {
      decode = openAacTrack(track);
      return decode.ok ? ok(undefined) : no(liveRefusal(decode.refusal));
    },
    decode(packet) {
      const block = decode.ok ? decode.value(packet) : decode;
      if (!block.ok) return block;
      return block.value.rate === rate ? ok(mixDown(block.value.channels)) : damaged(`it has ${block.value.rate} Hz`);
    },
    free: () => {},
  };
}

/** Readers of containers that begin at any place; raw packets need none. */
const readers: Readonly<Partial<Record<Encoding, (from: Origin) => ContainerReader>>> = {
  'ogg-opus': ({ position }) => createPageReader(position),
  webm: createWebmReader,
  aac: createAdtsReader,
};

/** Samples per second that a format decodes to. */
export const decodedRate = ({ encoding, rate }: StreamFormat): number =>
  encoding === 'opus' || encoding === 'ogg-opus' || encoding === 'webm' ? MODEL_RATE : rate;

/**
 * Sound in packets: raw Opus, one to a chunk, or a container, which chunks may cut anywhere. The state of a decoder
 * cannot be taken along, so another source begins some packets earlier.
 */
export async function createPacketSource(format: StreamFormat, from: Origin, skipped: number): Promise<Result<Source>> {
  const rate = decodedRate(format);
  const decoder = format.encoding === 'aac' ? createAacPackets(rate) : await createOpusPackets(format.channels);
  const reader = readers[format.encoding]?.(from);
  let frame = from.frame;
  let skip = skipped;
  /** Positions at which a decoder could begin, and the first frame that it would give. */
  let places: Origin[] = [from];

  function decode(packet: Uint8Array, out: Float32Array[]): Result<undefined> {
    // Some senders send an empty packet for silence.
    if (packet.length === 0) return ok(undefined);
    const decoded = decoder.decode(packet);
    if (!decoded.ok) return decoded;
    const sound = decoded.value;
    frame += sound.length;
    const dropped = Math.min(skip, sound.length);
    skip -= dropped;
    out.push(sound.slice(dropped));
    return ok(undefined);
  }

  /** Notes a place where only the decoder's own memory is missing; packets of one block share it. */
  function note(position: number) {
    if (position !== places.at(-1)?.position) places.push({ position, frame });
  }

  function read(item: ContainerItem, out: Float32Array[]): Result<undefined> {
    switch (item.type) {
      case 'refused':
        return no(item.refusal);
      case 'broken':
        return damaged(item.rule);
      case 'place':
        note(item.position);
        return ok(undefined);
      case 'aac':
        return decoder.open(item.track);
      case 'packet':
        return decode(item.packet, out);
      case 'head': {
        if (item.channels > 2) return damaged('it has more than two channels');
        // The pre-skip counts at 48 kHz (RFC 7845 §5.1).
        const delay = Math.round((item.preSkip * MODEL_RATE) / 48_000);
        skip += delay;
        frame -= delay;
        return ok(undefined);
      }
    }
  }

  return ok({
    rate,
    push(position, audio) {
      const out: Float32Array[] = [];
      const most = frame + STREAM_UNPACK_S * rate;
      if (!reader) {
        note(position);
        const done = decode(audio, out);
        return done.ok ? ok(joinSamples(out)) : done;
      }
      for (const item of reader.push(audio)) {
        const done = read(item, out);
        if (!done.ok) return done;
        if (frame > most) return damaged('a message unpacks to more sound than speech ever needs');
      }
      return ok(joinSamples(out));
    },
    end() {
      for (const item of reader?.finish?.() ?? []) if (item.type === 'refused') return no(item.refusal);
      return ok(undefined);
    },
    locate(wanted): ResumePoint {
      const before = places.findLastIndex((place) => place.frame <= wanted - decoder.prerollSeconds * rate);
      // Nothing that far back: the beginning, where every decoder is new.
      if (before > 0) places = places.slice(before);
      const [first = from] = places;
      const track = first.position > 0 ? reader?.track?.() : undefined;
      return { position: first.position, skip: wanted - first.frame, ...(track !== undefined && { track }) };
    },
    free: () => decoder.free(),
  });
}
