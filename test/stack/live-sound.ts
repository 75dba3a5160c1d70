import { createWavReader } from '../../shared/speech/wav.ts';
import { type Clip, clipBytes } from './clips.ts';

/** Sound of a clip, as a microphone would give it. */
export interface LiveSound {
  readonly rate: number;
  /** 16-bit little-endian samples, one channel. */
  readonly samples: Int16Array;
}

/** A WAV clip with a second of silence behind it, so that its last word has an end. */
export function liveSound(clip: Clip, silenceSeconds = 1): LiveSound {
  const read = createWavReader().push(clipBytes(clip));
  if (!read.ok || !read.value) throw new Error(`${clip.file} is not a WAV file`);
  const { rate, channels } = read.value;
  const frames = channels[0]?.length ?? 0;
  const samples = new Int16Array(frames + Math.round(silenceSeconds * rate));
  for (let i = 0; i < frames; i++) {
    const sum = channels.reduce((all, channel) => all + (channel[i] ?? 0), 0);
    samples[i] = Math.round((sum / channels.length) * 0x7fff);
  }
  return { rate, samples };
}

/** Repeats an audio. */
export function repeat({ rate, samples }: LiveSound, times: number): LiveSound {
  const all = new Int16Array(samples.length * times);
  for (let at = 0; at < times; at++) all.set(samples, at * samples.length);
  return { rate, samples: all };
}

/**
 * Converts to the widest format: 32-bit floats of two channels, eight times the bytes of 16 kHz of one
 * channel.
 */
export function wide({ samples }: LiveSound): Uint8Array {
  const floats = new Float32Array(2 * samples.length);
  for (let at = 0; at < floats.length; at++) floats[at] = (samples[at >> 1] as number) / 0x8000;
  return new Uint8Array(floats.buffer);
}

/** Yields pieces of a tenth of a second. */
export function* pieces({ rate, samples }: LiveSound): Generator<Uint8Array> {
  const step = rate / 10;
  for (let at = 0; at < samples.length; at += step) {
    const piece = samples.subarray(at, at + step);
    yield new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength).slice();
  }
}

/** µ-law of ITU-T G.711, as telephones send it. */
export function muLaw(samples: Int16Array): Uint8Array {
  return Uint8Array.from(samples, (sample) => {
    const sign = sample < 0 ? 0x80 : 0;
    const magnitude = Math.min(32_635, Math.abs(sample)) + 132;
    const exponent = Math.max(0, 31 - Math.clz32(magnitude) - 7);
    return ~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 15)) & 0xff;
  });
}

/** The packets of an Ogg Opus file, as a phone sends them one by one: without its two headers (RFC 7845 §3). */
export function opusPackets(file: Uint8Array): Uint8Array[] {
  const packets: Uint8Array[] = [];
  let held: number[] = [];
  for (let page = 0; page + 27 <= file.length; ) {
    const count = file[page + 26] ?? 0;
    const lacing = file.subarray(page + 27, page + 27 + count);
    let at = page + 27 + count;
    for (const size of lacing) {
      held.push(...file.subarray(at, at + size));
      at += size;
      if (size === 255) continue;
      packets.push(Uint8Array.from(held));
      held = [];
    }
    page = at;
  }
  return packets.slice(2);
}
