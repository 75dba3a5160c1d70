import { limits } from '../../../../shared/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { type SoundBlock, type SoundFormat, sniffBytes, sniffFormat } from '../../../../shared/speech/format.ts';
import { createWavReader } from '../../../../shared/speech/wav.ts';
import { openFlac } from './flac.ts';
import { openMp3 } from './mp3.ts';
import { openOpus } from './opus.ts';

/** One recording being decoded. A decoder takes small slices, so that what one call unpacks stays bounded. */
export interface SoundDecoder {
  /** Most bytes per `push`: a slice of the densest file there can be unpacks to some tens of MB at most. */
  readonly sliceBytes: number;
  push(slice: Uint8Array): Promise<Result<SoundBlock | undefined>>;
  finish(): Promise<Result<SoundBlock | undefined>>;
  free(): void;
}

function openWav(): SoundDecoder {
  const reader = createWavReader();
  return {
    sliceBytes: limits.sealSegmentBytes.value,
    push: async (slice) => reader.push(slice),
    finish: async () => reader.finish(),
    free: () => {},
  };
}

/** By format; each gets the first bytes of the file. */
const openers: Record<SoundFormat, (head: Uint8Array) => SoundDecoder | Promise<SoundDecoder>> = {
  wav: openWav,
  flac: openFlac,
  mp3: openMp3,
  opus: openOpus,
};

function judge(block: SoundBlock): Result<SoundBlock> {
  if (block.rate === 0) return no(refuse('audio_invalid', { rule: 'its header says 0 Hz' }));
  const fits = block.rate >= limits.audioRateMin.value && block.rate <= limits.audioRateMax.value;
  if (fits && block.channels.length <= limits.audioChannels.value) return ok(block);
  return no(refuse('audio_unsupported', undefined, `${block.channels.length} channels, ${block.rate} Hz`));
}

/**
 * Decodes a file as its bytes arrive. The last item is a refusal when the file is empty, unknown, broken or longer than
 * `limits.audioSeconds`; nothing follows it.
 */
export async function* decodeSound(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Result<SoundBlock>> {
  let head: Uint8Array = new Uint8Array(0);
  let decoder: SoundDecoder | undefined;
  let seconds = 0;

  /** Passes a block on unless it breaks a rule. */
  function check(decoded: Result<SoundBlock | undefined>): Result<SoundBlock | undefined> {
    if (!decoded.ok || !decoded.value) return decoded;
    const judged = judge(decoded.value);
    if (!judged.ok) return judged;
    seconds += (judged.value.channels[0]?.length ?? 0) / judged.value.rate;
    const limit = limits.audioSeconds.value;
    return seconds > limit ? no(refuse('audio_too_long', { limit })) : judged;
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
        const format = sniffFormat(head);
        if (!format) return yield no(refuse('audio_unsupported'));
        decoder = await openers[format](head);
      }
      for (let at = 0; at < input.length; at += decoder.sliceBytes) {
        const block = check(await decoder.push(input.subarray(at, at + decoder.sliceBytes)));
        if (!block.ok) return yield block;
        if (block.value) yield ok(block.value);
      }
    }
    if (!decoder) {
      if (head.length === 0) return yield no(refuse('audio_empty'));
      const format = sniffFormat(head);
      if (!format) return yield no(refuse('audio_unsupported'));
      decoder = await openers[format](head);
      const block = check(await decoder.push(head));
      if (!block.ok) return yield block;
      if (block.value) yield ok(block.value);
    }
    const rest = check(await decoder.finish());
    if (!rest.ok) return yield rest;
    if (rest.value) yield ok(rest.value);
    if (seconds === 0) yield no(refuse('audio_empty'));
  } finally {
    decoder?.free();
  }
}
