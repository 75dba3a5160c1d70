import { OpusDecoder } from 'opus-decoder';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { StreamFormat } from '../../../../shared/stream/format.ts';
import { joinSamples } from '../audio/join.ts';
import { MODEL_RATE, mixDown } from '../audio/mono.ts';
import { createPageReader } from './ogg-pages.ts';
import type { Origin, Place, Source } from './source.ts';

/**
 * Sound in one message of Ogg Opus: 64 KiB of the thinnest speech codecs. Silence unpacks to an hour, in one
 * turn of the event loop.
 */
const STREAM_UNPACK_S = 120;

/** A decoder that begins in the middle needs this much to sound like one that did not (RFC 7845 §4.6: 80 ms). */
const PREROLL_FRAMES = 0.08 * MODEL_RATE;

const damaged = (rule: string): Result<never> => no(refuse('audio_invalid', { rule }));

/**
 * Opus: raw packets, one to a chunk, or pages of an Ogg stream, which chunks may cut anywhere. libopus decodes to the
 * rate of the models by itself. Its state cannot be taken along, so another source begins some packets earlier.
 */
export async function createPacketSource(format: StreamFormat, from: Origin, skipped: number): Promise<Result<Source>> {
  const decoder = new OpusDecoder({
    sampleRate: MODEL_RATE,
    channels: format.channels,
    streamCount: 1,
    coupledStreamCount: format.channels - 1,
    channelMappingTable: format.channels === 2 ? [0, 1] : [0],
  });
  await decoder.ready;
  const pages = format.encoding === 'ogg-opus' ? createPageReader(from.position) : undefined;
  let frame = from.frame;
  let skip = skipped;
  /**
   * Positions at which a decoder could begin, and the first frame it would give: starts of packets, or of
   * pages.
   */
  let places: Origin[] = [from];

  function decode(packet: Uint8Array, out: Float32Array[]): Result<undefined> {
    // No packet at all is how some senders say that nothing is being said.
    if (packet.length === 0) return ok(undefined);
    try {
      const { channelData, samplesDecoded, errors } = decoder.decodeFrame(packet);
      if (errors.length > 0 || samplesDecoded <= 0) return damaged('a packet is not Opus');
      const sound = mixDown(channelData.map((samples) => samples.subarray(0, samplesDecoded)));
      frame += sound.length;
      const dropped = Math.min(skip, sound.length);
      skip -= dropped;
      out.push(sound.slice(dropped));
      return ok(undefined);
    } catch {
      return damaged('a packet is not Opus');
    }
  }

  /** A place where nothing of before is needed but the decoder's own memory. */
  function note(position: number) {
    places.push({ position, frame });
  }

  return ok({
    rate: MODEL_RATE,
    push(position, audio) {
      const out: Float32Array[] = [];
      const most = frame + STREAM_UNPACK_S * MODEL_RATE;
      if (!pages) {
        note(position);
        const done = decode(audio, out);
        return done.ok ? ok(joinSamples(out)) : done;
      }
      for (const item of pages.push(audio)) {
        if (item.type === 'broken') return damaged(item.rule);
        if (item.type === 'page') note(item.position);
        else if (item.type === 'head') {
          if (item.channels > 2) return damaged('it has more than two channels');
          // The pre-skip counts at 48 kHz (RFC 7845 §5.1).
          skip += Math.round((item.preSkip * MODEL_RATE) / 48_000);
          frame -= Math.round((item.preSkip * MODEL_RATE) / 48_000);
        } else {
          const done = decode(item.packet, out);
          if (!done.ok) return done;
          if (frame > most) return damaged('a message unpacks to more sound than speech ever needs');
        }
      }
      return ok(joinSamples(out));
    },
    locate(wanted): Place {
      const before = places.findLastIndex((place) => place.frame <= wanted - PREROLL_FRAMES);
      // Nothing that far back: the beginning, where every decoder is new.
      if (before > 0) places = places.slice(before);
      const [first = from] = places;
      return { position: first.position, skip: wanted - first.frame };
    },
    free: () => decoder.free(),
  });
}
