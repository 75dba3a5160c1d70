import { adtsRate } from '../../../../shared/speech/format.ts';
import { createByteQueue } from './byte-queue.ts';
import { type Demuxer, invalid, type MediaItem, truncated, unsupported } from './demuxer.ts';

/** Header without the checksum that may follow it. */
const HEADER_BYTES = 7;

/** AudioSpecificConfig (ISO/IEC 14496-3 §1.6.2.1) of AAC by type, index of the rate, and layout of channels. */
const configOf = (type: number, rate: number, layout: number) =>
  Uint8Array.of((type << 3) | (rate >> 1), ((rate & 1) << 7) | (layout << 3));

/**
 * Packets of AAC in ADTS (ISO/IEC 13818-7 §6.2): frames that each say how long they are. Like MP3 it has no length: a
 * file that was cut between two frames is a shorter recording. `start` is the offset of the frame that comes first.
 */
export function createAdtsDemuxer(start = 0): Demuxer {
  const queue = createByteQueue(start);
  let config: Uint8Array | undefined;
  let frames = 0;

  /** Reads the header of a frame. Each frame says the format again; a stream has one. */
  function readHeader(head: Uint8Array): MediaItem | { readonly bytes: number; readonly skip: number } {
    const [sync = 0, kind = 0, form = 0, size = 0, middle = 0, low = 0, blocks = 0] = head;
    if (sync !== 0xff || (kind & 0xf6) !== 0xf0) return invalid('its frames do not follow each other');
    if (adtsRate(head) === undefined) return invalid('its header has no sample rate');
    const read = configOf(1 + (form >> 6), (form >> 2) & 15, ((form & 1) << 2) | (size >> 6));
    if (config && !config.every((byte, i) => byte === read[i])) return unsupported('ADTS of changing formats');
    config = read;
    // A second block in a frame has no length of its own.
    if (blocks & 3) return unsupported('AAC of several blocks a frame in ADTS');
    const skip = kind & 1 ? HEADER_BYTES : HEADER_BYTES + 2;
    const bytes = ((size & 3) << 11) | (middle << 3) | (low >> 5);
    return bytes > skip ? { bytes, skip } : invalid('a frame has no bytes');
  }

  return {
    *push(bytes) {
      queue.append(bytes);
      for (;;) {
        const head = queue.peek(HEADER_BYTES);
        if (!head) return;
        const isNew = config === undefined;
        const read = readHeader(head);
        if ('type' in read) return yield read;
        if (isNew && config)
          yield { type: 'track', track: { codec: 'aac', container: 'ADTS', config, skipSeconds: 0 } };
        const at = queue.position();
        const frame = queue.take(read.bytes);
        if (!frame) return;
        frames++;
        yield { type: 'packet', packet: frame.subarray(read.skip), at };
      }
    },
    *finish() {
      if (queue.length() > 0) yield truncated('adts frame');
      else if (frames === 0) yield invalid('it has no frames');
    },
  };
}
