import { concat } from '../../../../shared/bytes.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import { aLawTable, muLawTable } from '../../../../shared/speech/samples.ts';
import type { Encoding, StreamFormat } from '../../../../shared/stream/format.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import type { Origin, Source } from './source.ts';

/** How samples of an encoding are read: all of them at once, as this runs for every sample of every stream. */
interface Reader {
  readonly bytes: number;
  read(bytes: Uint8Array, samples: number): Float32Array;
}

/** Sanitises floats of a client: NaN becomes silence, and values are clipped to ±1. */
const finite = (sample: number) => (Number.isNaN(sample) ? 0 : Math.max(-1, Math.min(1, sample)));

/** Byte by byte, since samples seldom lie where a processor could read them whole, and copying them costs more. */
function readInts(bytes: Uint8Array, samples: number): Float32Array {
  const sound = new Float32Array(samples);
  for (let i = 0; i < samples; i++) {
    sound[i] = ((((bytes[2 * i + 1] as number) << 24) >> 16) | (bytes[2 * i] as number)) / 0x8000;
  }
  return sound;
}

function readFloats(bytes: Uint8Array, samples: number): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const sound = new Float32Array(samples);
  for (let i = 0; i < samples; i++) sound[i] = finite(view.getFloat32(4 * i, true));
  return sound;
}

function readCodes(table: Float32Array, bytes: Uint8Array, samples: number): Float32Array {
  const sound = new Float32Array(samples);
  for (let i = 0; i < samples; i++) sound[i] = table[bytes[i] as number] as number;
  return sound;
}

const readers: Readonly<Partial<Record<Encoding, Reader>>> = {
  linear16: { bytes: 2, read: readInts },
  linear32: { bytes: 4, read: readFloats },
  mulaw: { bytes: 1, read: (bytes, samples) => readCodes(muLawTable, bytes, samples) },
  alaw: { bytes: 1, read: (bytes, samples) => readCodes(aLawTable, bytes, samples) },
};

/** For a second of 16-bit samples that need no arithmetic; longer messages get a place of their own. */
const scratch = new Uint8Array(2 * MODEL_RATE);

/** Samples as they come. A processor reads them whole only where they lie even, and in records they do not. */
function takeInts(bytes: Uint8Array, samples: number): Int16Array {
  const place = 2 * samples <= scratch.length ? scratch : new Uint8Array(2 * samples);
  place.set(2 * samples === bytes.length ? bytes : bytes.subarray(0, 2 * samples));
  return new Int16Array(place.buffer, 0, samples);
}

/** Mean of two channels that interleave. */
function mix(sound: Float32Array): Float32Array {
  const mixed = new Float32Array(sound.length / 2);
  for (let i = 0; i < mixed.length; i++) mixed[i] = ((sound[2 * i] as number) + (sound[2 * i + 1] as number)) / 2;
  return mixed;
}

const none: Uint8Array = new Uint8Array(0);

function readerOf(encoding: Encoding): Reader {
  const reader = readers[encoding];
  if (!reader) throw new Error(`${encoding} is not PCM`);
  return reader;
}

/** Samples one after the other; a chunk may end inside one. */
export function createPcmSource({ encoding, rate, channels }: StreamFormat, from: Origin): Result<Source> {
  const reader = readerOf(encoding);
  const frameBytes = reader.bytes * channels;
  const ready = encoding === 'linear16' && channels === 1 && rate === MODEL_RATE;
  const origin = from;
  let rest = none;

  return ok({
    rate,
    push(_position, audio) {
      const bytes = rest.length === 0 ? audio : concat(rest, audio);
      const frames = Math.floor(bytes.length / frameBytes);
      rest = frames * frameBytes === bytes.length ? none : bytes.slice(frames * frameBytes);
      if (ready) return ok(takeInts(bytes, frames));
      const sound = reader.read(bytes, frames * channels);
      return ok(channels === 1 ? sound : mix(sound));
    },
    locate: (frame) => ({ position: origin.position + (frame - origin.frame) * frameBytes, skip: 0 }),
    free: () => {},
  });
}
