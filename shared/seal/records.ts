import { KiB } from '../bytes.ts';
import { type Refusal, refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { type AeadFactory, webCryptoAead } from './aead.ts';
import { createFrameReader, cutAll, type FrameReader, sizeOf, writeLength } from './framing.ts';
import { SEAL_SEGMENT_BYTES } from './limits.ts';
import { type Message, packMessages, unpackMessages } from './pack.ts';
import { decodeHeader, type FrameKey, frameKey, headerLength, startsWith, writeHeader, writeNonce } from './sframe.ts';
import { type Suite, type SuiteId, suites } from './suites.ts';

/** One segment with SFrame header (at most 17), tag (16), flag and length. */
export const SEAL_RECORD_BYTES = 64 * KiB + 64;
/** Frames under one key, far inside the limits of GCM. */
export const SEAL_FRAMES_MAX = 2 ** 24;

/** Bit 0 of the flag byte: nothing follows this record. */
const FINAL = 1;
/** Bit 1, on lanes only: several messages, each with its length before it. The other bits are 0. */
const PACKED = 2;
/** The key id is fixed, since each direction has a base key of its own. */
const KID = 0n;

const details = { malformed: 'length out of bounds', after: 'bytes after the final record' } as const;

export interface Opened {
  readonly plaintext: Uint8Array;
  readonly final: boolean;
}

/** At once where nothing has to be waited for. */
type Now<T> = T | Promise<T>;

/** A place for so many bytes, exactly. */
export type Room = (bytes: number) => Uint8Array;

const newRoom: Room = (bytes) => new Uint8Array(bytes);

/** One direction of one request. Not for use by two senders: the counter is inside. */
export interface Sealer {
  /**
   * Seals one framed record of at most `SEAL_SEGMENT_BYTES` of plaintext. Records must be sent in the
   * order of the calls. Throws after the final record and past `SEAL_FRAMES_MAX`: both are bugs of the
   * caller. `plaintext` is not read again once the call has returned. `room`, if given, returns the buffer
   * for a record of so many bytes, so that a sender can reuse one. Synchronous when the cipher is.
   */
  seal(plaintext: Uint8Array, final: boolean, room?: Room): Now<Uint8Array>;
}

/** A sealer that puts several messages into one record, where the other side knows how to read that. */
export interface PackingSealer extends Sealer {
  /** Opens as the messages, one by one. Together, with their lengths, they are as long as a plaintext may be. */
  pack(messages: readonly Message[], final: boolean): Now<Uint8Array>;
}

export interface Opener {
  /**
   * The records that are complete once `chunk` is added; chunks may cut records anywhere. A refusal (`seal_broken`)
   * comes last, and every later call gives the same one. One call at a time; bytes of a loop that was left early are
   * kept for the next call.
   */
  open(chunk: Uint8Array): AsyncGenerator<Result<Opened>>;
  /**
   * The same for a body that is there whole, without the steps between: all its records, or why not all. At once when
   * the cipher is.
   */
  openWhole(body: Uint8Array): Now<Result<readonly Opened[]>>;
  /** The final record was opened and no byte is left over. */
  finished(): boolean;
}

export async function createSealer(
  baseKey: Uint8Array,
  suite: SuiteId,
  aead: AeadFactory = webCryptoAead,
  frames?: number,
): Promise<Sealer> {
  return sealerFrom(await frameKey(baseKey, suites[suite], KID, aead), 0, 0, frames);
}

export async function createOpener(
  baseKey: Uint8Array,
  suite: SuiteId,
  aead: AeadFactory = webCryptoAead,
  frames?: number,
): Promise<Opener> {
  const key = await frameKey(baseKey, suites[suite], KID, aead);
  return openerFrom(key, suites[suite], { first: 0, packs: false, frames });
}

/**
 * Scratch nonces and additional data, by length. Not read once a call has returned (`Aead`); allocating new
 * ones for each call costs as much as encrypting a kilobyte.
 */
const rooms = Array.from({ length: 16 }, (_, length) => [new Uint8Array(length), new Uint8Array(length)] as const);
const roomFor = (length: number, which: 0 | 1): Uint8Array => rooms[length]?.[which] ?? new Uint8Array(length);

const nonceOf = (salt: Uint8Array, counter: number) => writeNonce(roomFor(salt.length, 0), salt, counter);

/** The header and the flag byte. */
function additionalData(counter: number, flag: number): Uint8Array {
  const length = headerLength(counter);
  const aad = roomFor(length + 1, 1);
  writeHeader(aad, 0, counter);
  aad[length] = flag;
  return aad;
}

/** Returns the framed record of a ciphertext. */
function frameRecord(counter: number, flag: number, made: Uint8Array | ArrayBuffer, room: Room): Uint8Array {
  const sealed = made instanceof Uint8Array ? made : new Uint8Array(made);
  const length = 1 + headerLength(counter) + sealed.length;
  const record = room(sizeOf(length) + length);
  const at = writeLength(record, 0, length);
  record[at] = flag;
  record.set(sealed, writeHeader(record, at + 1, counter));
  // Buffers of WebCrypto lie outside the heap. Left to the collector they cause most of its full runs, which
  // stop all work.
  if (made instanceof ArrayBuffer) made.transfer?.(0);
  return record;
}

/**
 * The plaintext of a record without its length, or what is wrong with it, or nothing when it is not authentic; at once when the cipher is, as agents open
 * ten records a second of each stream. `flags`: the highest flag byte with a meaning.
 */
function openRecord(
  { salt, aead }: FrameKey,
  counter: number,
  flags: number,
  record: Uint8Array,
): Now<Uint8Array | string | undefined> {
  const flag = record[0] ?? 0;
  if (flag > flags) return 'unknown flag';
  const aad = additionalData(counter, flag);
  const header = aad.length - 1;
  if (!startsWith(record, 1, aad, header)) return whyNot(record.subarray(1));
  return aead.open(nonceOf(salt, counter), aad, record.subarray(1 + header));
}

/** Says how a header differs from the expected one. */
function whyNot(frame: Uint8Array): string {
  const header = decodeHeader(frame);
  if (!header) return 'malformed header';
  return header.kid === KID ? 'counter out of order' : 'unexpected key id';
}

/**
 * Seals with the `SEAL_FRAMES_MAX` counters from `first` on; on a lane, others seal with the same key. The first
 * `skip` of them were used already.
 */
export const sealerFrom = (key: FrameKey, first: number, skip: number, frames = SEAL_FRAMES_MAX): PackingSealer =>
  new RecordSealer(key, first, skip, frames);

interface OpenerOptions {
  /** First counter. */
  readonly first: number;
  /** A record may hold several messages. */
  readonly packs: boolean;
  /** Frames under the key. */
  readonly frames?: number | undefined;
}

/** Opens the records of such a sealer. */
export const openerFrom = (key: FrameKey, suite: Suite, options: OpenerOptions): Opener =>
  new RecordOpener(key, suite, options);

// Classes, since a short request makes one of each: closures for every method cost as much as what they do.

class RecordSealer implements PackingSealer {
  readonly #key: FrameKey;
  readonly #first: number;
  readonly #frames: number;
  #counter: number;
  #ended = false;

  constructor(key: FrameKey, first: number, skip: number, frames: number) {
    this.#key = key;
    this.#first = first;
    this.#frames = frames;
    this.#counter = first + skip;
  }

  seal(plaintext: Uint8Array, final: boolean, room?: Room): Now<Uint8Array> {
    return this.#seal(plaintext, final ? FINAL : 0, room);
  }

  pack(messages: readonly Message[], final: boolean): Now<Uint8Array> {
    return this.#seal(packMessages(messages), final ? PACKED | FINAL : PACKED);
  }

  #seal(plaintext: Uint8Array, flag: number, room: Room = newRoom): Now<Uint8Array> {
    if (this.#ended) return refused('sealing after the final record');
    if (this.#counter - this.#first >= this.#frames) return refused('too many records under one key');
    if (plaintext.length > SEAL_SEGMENT_BYTES) {
      return Promise.reject(new RangeError('segment too large to seal'));
    }
    // Taken before anything is awaited, so that two calls can never share a counter.
    const counter = this.#counter++;
    this.#ended = (flag & FINAL) !== 0;
    const { salt, aead } = this.#key;
    const made = aead.seal(nonceOf(salt, counter), additionalData(counter, flag), plaintext);
    return made instanceof Promise
      ? made.then((sealed) => frameRecord(counter, flag, sealed, room))
      : frameRecord(counter, flag, made, room);
  }
}

const refused = (detail: string): Promise<never> => Promise.reject(new Error(detail));

class RecordOpener implements Opener {
  readonly #key: FrameKey;
  readonly #smallest: number;
  readonly #flags: number;
  readonly #first: number;
  readonly #most: number;
  /** None for a body that comes whole. */
  #frames: FrameReader | undefined;
  #counter: number;
  #ended = false;
  #broken: Refusal | undefined;

  constructor(key: FrameKey, { Nt }: Suite, { first, packs, frames = SEAL_FRAMES_MAX }: OpenerOptions) {
    this.#key = key;
    this.#smallest = 2 + Nt;
    this.#flags = packs ? FINAL | PACKED : FINAL;
    this.#first = first;
    this.#most = frames;
    this.#counter = first;
  }

  async *open(chunk: Uint8Array): AsyncGenerator<Result<Opened>> {
    if (!this.#broken) this.#reader().push(chunk);
    for (;;) {
      const opened = await this.#next();
      if (!opened) return;
      if (!opened.ok) {
        yield opened;
        return;
      }
      for (const one of opened.value) yield ok(one);
    }
  }

  openWhole(body: Uint8Array): Now<Result<readonly Opened[]>> {
    if (!this.#ended && this.#isEmpty() && !this.#broken) {
      const usual = cutAll(body, this.#smallest, SEAL_RECORD_BYTES);
      if (usual?.length === 1) return this.#openNext(usual[0] as Uint8Array);
    }
    this.#reader().push(body);
    return this.#openRest();
  }

  finished(): boolean {
    return this.#ended && !this.#broken && this.#isEmpty();
  }

  #reader(): FrameReader {
    this.#frames ??= createFrameReader(this.#smallest, SEAL_RECORD_BYTES);
    return this.#frames;
  }

  #isEmpty(): boolean {
    return !this.#frames || this.#frames.empty();
  }

  #refuse(detail: string): Result<never> {
    this.#broken = refuse('seal_broken', undefined, `record ${this.#counter - this.#first}: ${detail}`);
    return no(this.#broken);
  }

  /** Opens the next record; `undefined` when it is incomplete. */
  #next(): Now<Result<readonly Opened[]> | undefined> {
    if (this.#broken) return no(this.#broken);
    const record = this.#ended && !this.#isEmpty() ? 'after' : this.#reader().next();
    if (record === 'more') return undefined;
    return typeof record === 'string' ? this.#refuse(details[record]) : this.#openNext(record);
  }

  #openNext(record: Uint8Array): Now<Result<readonly Opened[]>> {
    if (this.#counter - this.#first >= this.#most) return this.#refuse('too many records under one key');
    const opened = openRecord(this.#key, this.#counter, this.#flags, record);
    return opened instanceof Promise ? opened.then((one) => this.#take(record, one)) : this.#take(record, opened);
  }

  #take(record: Uint8Array, plaintext: Uint8Array | string | undefined): Result<readonly Opened[]> {
    if (!plaintext) return this.#refuse('not authentic');
    if (typeof plaintext === 'string') return this.#refuse(plaintext);
    if (plaintext.length > SEAL_SEGMENT_BYTES) return this.#refuse('segment too large');
    const flag = record[0] ?? 0;
    const final = (flag & FINAL) !== 0;
    const messages = flag & PACKED ? unpackMessages(plaintext) : [plaintext];
    if (!messages) return this.#refuse('malformed messages');
    this.#counter++;
    this.#ended = final;
    if (messages.length === 1) return ok([{ plaintext: messages[0] as Uint8Array, final }]);
    return ok(messages.map((message, at) => ({ plaintext: message, final: final && at === messages.length - 1 })));
  }

  async #openRest(): Promise<Result<readonly Opened[]>> {
    const all: Opened[] = [];
    for (;;) {
      const opened = await this.#next();
      if (!opened) return ok(all);
      if (!opened.ok) return opened;
      all.push(...opened.value);
    }
  }
}
