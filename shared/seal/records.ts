import { limits } from '../limits.ts';
import { type Refusal, refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { type AeadFactory, webCryptoAead } from './aead.ts';
import { concat } from './bytes.ts';
import { createFrameReader, encodeLength } from './framing.ts';
import { decodeHeader, frameKey, openFrame, sealFrame } from './sframe.ts';
import { type Suite, type SuiteId, suites } from './suites.ts';

/** Bit 0 of the flag byte: nothing follows this record. The other bits are 0. */
const FINAL = 1;
/** The key id is fixed, since each direction of each request has a base key of its own. */
const KID = 0n;

const details = { malformed: 'length out of bounds', after: 'bytes after the final record' } as const;

export interface Opened {
  readonly plaintext: Uint8Array;
  readonly final: boolean;
}

/** One direction of one request. Not for use by two senders: the counter is inside. */
export interface Sealer {
  /**
   * One framed record of at most `limits.sealSegmentBytes` of plaintext. Records must be sent in the order of the
   * calls. Throws after the final record and past `limits.sealFrames`: both are bugs of the caller.
   */
  seal(plaintext: Uint8Array, final: boolean): Promise<Uint8Array>;
}

export interface Opener {
  /**
   * The records that are complete once `chunk` is added; chunks may cut records anywhere. A refusal (`seal_broken`)
   * comes last, and every later call gives the same one. One call at a time; bytes of a loop that was left early are
   * kept for the next call.
   */
  open(chunk: Uint8Array): AsyncGenerator<Result<Opened>>;
  /** The final record was opened and no byte is left over. */
  finished(): boolean;
}

export async function createSealer(
  baseKey: Uint8Array,
  suite: SuiteId,
  aead: AeadFactory = webCryptoAead,
): Promise<Sealer> {
  const key = await frameKey(baseKey, suites[suite], KID, aead);
  let counter = 0;
  let ended = false;
  return {
    async seal(plaintext, final) {
      if (ended) throw new Error('sealing after the final record');
      if (counter >= limits.sealFrames.value) throw new Error('too many records under one key');
      if (plaintext.length > limits.sealSegmentBytes.value) throw new RangeError('segment too large to seal');
      // Taken before anything is awaited, so that two calls can never share a counter.
      const own = BigInt(counter++);
      ended = final;
      const flag = Uint8Array.of(final ? FINAL : 0);
      const frame = await sealFrame(key, own, flag, plaintext);
      return concat(encodeLength(flag.length + frame.length), flag, frame);
    },
  };
}

export async function createOpener(
  baseKey: Uint8Array,
  suite: SuiteId,
  aead: AeadFactory = webCryptoAead,
): Promise<Opener> {
  const row: Suite = suites[suite];
  const key = await frameKey(baseKey, row, KID, aead);
  const frames = createFrameReader(2 + row.Nt, limits.sealRecordBytes.value);
  let counter = 0;
  let ended = false;
  let broken: Refusal | undefined;

  const refused = (detail: string): Result<Opened> => {
    broken = refuse('seal_broken', undefined, `record ${counter}: ${detail}`);
    return no(broken);
  };

  async function openRecord(record: Uint8Array): Promise<Result<Opened>> {
    const flag = record[0] ?? 0;
    if (flag > FINAL) return refused('unknown flag');
    const frame = record.subarray(1);
    const header = decodeHeader(frame);
    if (!header) return refused('malformed header');
    if (header.kid !== KID) return refused('unexpected key id');
    if (header.counter !== BigInt(counter)) return refused('counter out of order');
    if (counter >= limits.sealFrames.value) return refused('too many records under one key');
    const plaintext = await openFrame(key, header, Uint8Array.of(flag), frame);
    if (!plaintext) return refused('not authentic');
    if (plaintext.length > limits.sealSegmentBytes.value) return refused('segment too large');
    counter++;
    ended = flag === FINAL;
    return ok({ plaintext, final: ended });
  }

  return {
    async *open(chunk) {
      if (broken) {
        yield no(broken);
        return;
      }
      frames.push(chunk);
      for (;;) {
        const next = ended && !frames.empty() ? 'after' : frames.next();
        if (next === 'more') return;
        const opened = typeof next === 'string' ? refused(details[next]) : await openRecord(next);
        yield opened;
        if (!opened.ok) return;
      }
    },
    finished: () => ended && !broken && frames.empty(),
  };
}
