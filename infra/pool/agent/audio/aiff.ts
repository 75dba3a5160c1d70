import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { SEAL_SEGMENT_BYTES } from '../../../../shared/seal/limits.ts';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
import { bytesOfSample, readFrames, type SampleCoding, type SampleFormat } from '../../../../shared/speech/samples.ts';
import { RECORDING_CHANNELS_MAX } from '../../../../shared/speech/wav.ts';
import { createByteQueue } from './byte-queue.ts';
import { blocksOf } from './package-decoder.ts';
import type { SoundDecoder } from './sound-decoder.ts';

/** Longest `COMM` chunk: a name of 255 letters ends the one of AIFF-C. */
const COMM_BYTES = 512;
const HEAD_BYTES = 12;

const bySize: readonly SampleCoding[] = ['s8', 's16be', 's24be', 's32be'];
/** Codings of AIFF-C by compression type; integers of other sizes follow `bySize`. */
const codings: Readonly<Record<string, SampleCoding>> = {
  sowt: 's16',
  'raw ': 'u8',
  fl32: 'f32be',
  FL32: 'f32be',
  fl64: 'f64be',
  FL64: 'f64be',
  ulaw: 'mulaw',
  ULAW: 'mulaw',
  alaw: 'alaw',
  ALAW: 'alaw',
};

interface Chunk {
  readonly type: string;
  /** Offset behind it. */
  readonly end: number;
}

const invalid = (rule: string): Result<never, Refusal> => no(refuse('audio_invalid', { rule }));

/** An 80-bit extended float (IEEE 754): sign, 15 bits of exponent, 64 of mantissa. */
function readExtended(view: DataView, at: number): number {
  const high = view.getUint16(at);
  const magnitude = view.getUint32(at + 2) * 2 ** ((high & 0x7fff) - 16383 - 31);
  return high & 0x8000 ? -magnitude : magnitude;
}

/** Reads a `COMM` chunk (Audio Interchange File Format 1.3, AIFF-C draft of 1991). */
function readFormat(view: DataView, isCompressed: boolean): Result<SampleFormat> {
  if (view.byteLength < (isCompressed ? 22 : 18)) return invalid('its format chunk is too short');
  const [channels, bits, rate] = [view.getUint16(0), view.getUint16(6), Math.round(readExtended(view, 8))];
  const letters = isCompressed ? [18, 19, 20, 21].map((at) => view.getUint8(at)) : [];
  const type = isCompressed ? String.fromCharCode(...letters) : 'NONE';
  const plain = type === 'NONE' || type === 'twos' ? bySize[Math.ceil(bits / 8) - 1] : undefined;
  const coding = plain ?? (type === 'sowt' && bits !== 16 ? undefined : codings[type]);
  if (rate <= 0) return invalid(`its header says ${rate} Hz`);
  if (channels === 0) return invalid('its header says 0 channels');
  if (!coding || channels > RECORDING_CHANNELS_MAX) {
    const name = type.replace(/[^\x20-\x7e]/g, '?');
    return no(refuse('audio_unsupported', { found: `AIFF '${name}' of ${bits} bits and ${channels} channels` }));
  }
  return ok({ coding, rate, channels });
}

/** AIFF and AIFF-C as they arrive. Holds one chunk head and one frame. */
export function openAiff(): SoundDecoder {
  const queue = createByteQueue();
  let isCompressed = false;
  let format: SampleFormat | undefined;
  let chunk: Chunk | undefined;
  /** Bytes of sound that the header promises are behind; undefined before the sound. */
  let soundEnd: number | undefined;

  /** Opens the next chunk; false while its head is not there. */
  function nextChunk(): boolean {
    const head = queue.peek(8);
    if (!head) return false;
    const start = queue.position() + 8;
    const size = new DataView(head.buffer, head.byteOffset).getUint32(4);
    const type = String.fromCharCode(...head.subarray(0, 4));
    // Before the samples come an offset and a block size; every writer leaves both 0.
    if (!queue.take(type === 'SSND' ? 16 : 8)) return false;
    if (type === 'SSND') soundEnd = start + size;
    chunk = { type, end: start + size + (size & 1) };
    return true;
  }

  /** Reads on in the open chunk. Returns sound, or undefined when more bytes are needed. */
  function readChunk(open: Chunk): Result<SoundBlock | undefined> {
    const size = open.end - queue.position();
    if (open.type === 'COMM') {
      if (size > COMM_BYTES) return invalid('its format chunk is too long');
      const body = queue.take(size);
      if (!body) return ok(undefined);
      const read = readFormat(new DataView(body.buffer, body.byteOffset, body.byteLength), isCompressed);
      if (!read.ok) return read;
      format = read.value;
    } else if (open.type === 'SSND' && soundEnd !== undefined) {
      if (!format) return invalid('it has no format chunk before its sound');
      const frame = bytesOfSample(format.coding) * format.channels;
      const here = Math.min(queue.length(), soundEnd - queue.position());
      if (here >= frame) {
        const bytes = queue.take(here - (here % frame)) ?? new Uint8Array(0);
        return ok(readFrames(bytes, format));
      }
      if (soundEnd - queue.position() < frame) queue.skipTo(open.end);
    } else queue.skipTo(open.end);
    return ok(undefined);
  }

  function read(): Result<SoundBlock | undefined> {
    if (queue.position() === 0) {
      const head = queue.take(HEAD_BYTES);
      if (!head) return ok(undefined);
      isCompressed = head[11] === 0x43;
    }
    while (chunk || nextChunk()) {
      const open = chunk as Chunk;
      const block = readChunk(open);
      if (!block.ok || block.value) return block;
      if (queue.position() < open.end) return block;
      chunk = undefined;
    }
    return ok(undefined);
  }

  return {
    sliceBytes: SEAL_SEGMENT_BYTES,
    push(slice) {
      queue.append(slice);
      return blocksOf(read());
    },
    async *finish() {
      if (soundEnd === undefined) yield invalid('it has no sound');
      else if (queue.position() < soundEnd) yield no(refuse('audio_truncated', undefined, 'aiff'));
    },
    free: () => {},
  };
}
