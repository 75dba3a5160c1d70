import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { SEAL_SEGMENT_BYTES } from '../../../../shared/seal/limits.ts';
import { type SoundBlock, type SoundFormat, sniffBytes, sniffFormat } from '../../../../shared/speech/format.ts';
import {
  AUDIO_RATE_MIN_HZ,
  createWavReader,
  RECORDING_CHANNELS_MAX,
  RECORDING_RATE_MAX_HZ,
} from '../../../../shared/speech/wav.ts';
import { createAdtsDemuxer } from './adts.ts';
import { openAiff } from './aiff.ts';
import { openAmr } from './amr.ts';
import { openContainer } from './container.ts';
import { openFlac } from './flac.ts';
import { createMatroskaDemuxer } from './matroska.ts';
import { openMp3 } from './mp3.ts';
import { createMp4Demuxer } from './mp4.ts';
import { openOpus } from './opus.ts';
import { blocksOf } from './package-decoder.ts';
import type { Blocks, SoundDecoder } from './sound-decoder.ts';
import { createTurns } from './turns.ts';
import { createOggVorbisDemuxer } from './vorbis.ts';

/** Longest recording of one request; also stops compressed silence that unpacks without end. */
export const AUDIO_S = 4 * 3600;

function openWav(): SoundDecoder {
  const reader = createWavReader();
  return {
    sliceBytes: SEAL_SEGMENT_BYTES,
    push: (slice) => blocksOf(reader.push(slice)),
    finish: () => blocksOf(reader.finish()),
    free: () => {},
  };
}

/** By format; each gets the first bytes of the file. */
const openers: Record<SoundFormat, (head: Uint8Array) => SoundDecoder | Promise<SoundDecoder>> = {
  wav: openWav,
  aiff: openAiff,
  flac: openFlac,
  mp3: openMp3,
  opus: openOpus,
  amr: openAmr,
  mp4: () => openContainer(createMp4Demuxer()),
  webm: () => openContainer(createMatroskaDemuxer()),
  vorbis: () => openContainer(createOggVorbisDemuxer()),
  aac: () => openContainer(createAdtsDemuxer()),
};

/** Reports whether a sample is not a number, as floats of a file can be. */
function hasNaN({ channels }: SoundBlock): boolean {
  let sum = 0;
  for (const samples of channels) for (let i = 0; i < samples.length; i++) sum += samples[i] as number;
  return Number.isNaN(sum);
}

function judge(block: SoundBlock): Result<SoundBlock> {
  if (block.rate === 0) return no(refuse('audio_invalid', { rule: 'its header says 0 Hz' }));
  if (hasNaN(block)) return no(refuse('audio_invalid', { rule: 'a sample is not a number' }));
  const fits = block.rate >= AUDIO_RATE_MIN_HZ && block.rate <= RECORDING_RATE_MAX_HZ;
  if (fits && block.channels.length <= RECORDING_CHANNELS_MAX) return ok(block);
  return no(refuse('audio_unsupported', { found: `sound of ${block.channels.length} channels and ${block.rate} Hz` }));
}

/**
 * Decodes a file as its bytes arrive, in blocks of at most `TURN_S`, with a turn of the event loop after as
 * much. The last item is a refusal when the file is empty, unknown, broken or longer than `limit` seconds; nothing
 * follows it. Rejects when `signal` aborts.
 */
export async function* decodeSound(
  bytes: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
  limit: number = AUDIO_S,
): Blocks {
  const share = createTurns(signal);
  let head: Uint8Array = new Uint8Array(0);
  let decoder: SoundDecoder | undefined;
  let seconds = 0;
  let refused = false;

  /** A block unless it breaks a rule. */
  function check(decoded: Result<SoundBlock>): Result<SoundBlock> {
    const judged = decoded.ok ? judge(decoded.value) : decoded;
    if (!judged.ok) return judged;
    seconds += (judged.value.channels[0]?.length ?? 0) / judged.value.rate;
    return seconds > limit ? no(refuse('audio_too_long', { limit })) : judged;
  }

  async function* pass(blocks: Blocks): Blocks {
    for await (const decoded of blocks) {
      const block = check(decoded);
      refused = !block.ok;
      if (!block.ok) return yield block;
      for await (const piece of share(block.value)) yield ok(piece);
    }
  }

  /** By the first bytes; nothing when no format is like that. */
  async function open(): Promise<SoundDecoder | undefined> {
    const format = sniffFormat(head);
    return format && (await openers[format](head));
  }

  try {
    for await (const chunk of bytes) {
      let input = chunk;
      if (!decoder) {
        input = new Uint8Array(head.length + chunk.length);
        input.set(head);
        input.set(chunk, head.length);
        head = input;
        if (head.length < sniffBytes) continue;
        decoder = await open();
        if (!decoder) return yield no(refuse('audio_unsupported'));
      }
      for (let at = 0; at < input.length; at += decoder.sliceBytes) {
        yield* pass(decoder.push(input.subarray(at, at + decoder.sliceBytes)));
        if (refused) return;
      }
    }
    if (!decoder) {
      if (head.length === 0) return yield no(refuse('audio_empty'));
      decoder = await open();
      if (!decoder) return yield no(refuse('audio_unsupported'));
      yield* pass(decoder.push(head));
      if (refused) return;
    }
    yield* pass(decoder.finish());
    if (!refused && seconds === 0) yield no(refuse('audio_empty'));
  } finally {
    decoder?.free();
  }
}
