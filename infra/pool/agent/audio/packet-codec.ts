import { OpusDecoder } from 'opus-decoder';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
import { RECORDING_CHANNELS_MAX } from '../../../../shared/speech/wav.ts';
import { isAacEnabled, openAac, readAacConfig } from './aac.ts';
import type { Track } from './demuxer.ts';
import { MODEL_RATE } from './mono.ts';
import { decoded, type PacketCodec } from './package-decoder.ts';
import { openVorbis } from './vorbis.ts';

const unsupported = (found: string): Result<never, Refusal> => no(refuse('audio_unsupported', { found }));
const damaged = no(refuse('audio_invalid', { rule: 'its packets are damaged' }));

/** Samples at 48 kHz to skip at the start (RFC 7845 §5.1), in seconds. */
const preSkip = (head: DataView) => head.getUint16(10, true) / 48_000;

/** Opus by libopus, at the rate of the models. Up to 8 channels in streams as the header maps them. */
async function openOpus({ config, container }: Track): Promise<Result<PacketCodec & { readonly skipSeconds: number }>> {
  if (config.length < 19) return no(refuse('audio_invalid', { rule: 'its Opus header is too short' }));
  const head = new DataView(config.buffer, config.byteOffset, config.byteLength);
  const channels = head.getUint8(9);
  const isMapped = head.getUint8(18) !== 0;
  if (channels === 0 || channels > RECORDING_CHANNELS_MAX || (!isMapped && channels > 2)) {
    return unsupported(`Opus of ${channels} channels in ${container}`);
  }
  if (isMapped && config.length < 21 + channels) {
    return no(refuse('audio_invalid', { rule: 'its Opus header is too short' }));
  }
  const streamCount = isMapped ? head.getUint8(19) : 1;
  const coupledStreamCount = isMapped ? head.getUint8(20) : channels - 1;
  const channelMappingTable = isMapped ? [...config.subarray(21, 21 + channels)] : channels === 2 ? [0, 1] : [0];
  const streams = streamCount + coupledStreamCount;
  const fits = coupledStreamCount <= streamCount && streams <= RECORDING_CHANNELS_MAX;
  if (streamCount === 0 || !fits || channelMappingTable.some((stream) => stream !== 255 && stream >= streams)) {
    return no(refuse('audio_invalid', { rule: 'its Opus header maps channels wrongly' }));
  }
  const decoder = new OpusDecoder({
    sampleRate: MODEL_RATE,
    channels,
    streamCount,
    coupledStreamCount,
    channelMappingTable,
  });
  await decoder.ready;
  return ok({
    skipSeconds: preSkip(head),
    async decode(packet) {
      const block = await decoded(() => {
        const frame = decoder.decodeFrame(packet);
        return frame.errors.length > 0 ? { ...frame, samplesDecoded: 0 } : frame;
      });
      return block.ok && !block.value ? damaged : block;
    },
    free: () => decoder.free(),
  });
}

/** Opens AAC-LC; decodes a packet at a time. */
export function openAacTrack({ config, container }: Track): Result<(packet: Uint8Array) => Result<SoundBlock>> {
  const format = readAacConfig(config);
  if (typeof format === 'string') return unsupported(`${format} in ${container}; record AAC-LC or Opus`);
  if (!isAacEnabled()) return unsupported(`AAC in ${container}, which is not turned on here; record Opus, FLAC or WAV`);
  const decoder = openAac(config, format);
  if (!decoder) return unsupported(`AAC of ${format.rate} Hz in ${container}; record AAC-LC or Opus`);
  return ok((packet) => {
    try {
      const channels = decoder.decode(packet);
      return channels ? ok({ rate: format.rate, channels }) : damaged;
    } catch (cause) {
      // The decoder stops at damage that it does not expect.
      if (cause instanceof WebAssembly.RuntimeError) return damaged;
      throw cause;
    }
  });
}

/** Opens the decoder of a track; `skipSeconds` of its sound come before the recording. */
export async function openCodec(track: Track): Promise<Result<PacketCodec & { readonly skipSeconds: number }>> {
  if (track.codec === 'opus') return openOpus(track);
  const { skipSeconds } = track;
  if (track.codec === 'vorbis') {
    const vorbis = await openVorbis(track);
    return vorbis.ok ? ok({ ...vorbis.value, skipSeconds }) : vorbis;
  }
  const aac = openAacTrack(track);
  return aac.ok ? ok({ decode: async (packet) => aac.value(packet), free: () => {}, skipSeconds }) : aac;
}
