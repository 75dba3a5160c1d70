import { limits } from '../limits.ts';
import { type Refusal, refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { type AeadFactory, webCryptoAead } from './aead.ts';
import { createFrameReader, cutAll, type FrameReader, sizeOf, writeLength } from './framing.ts';
import { packMessages, unpackMessages } from './pack.ts';
import { decodeHeader, type FrameKey, frameKey, headerLength, startsWith, writeHeader, writeNonce } from './sframe.ts';
import { type Suite, type SuiteId, suites } from './suites.ts';

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
   * One framed record of at most `limits.sealSegmentBytes` of plaintext. Records must be sent in the order of the
   * calls. Throws after the final record and past `limits.sealFrames`: both are bugs of the caller. `plaintext` is not
   * read again once the call has returned. `room`, if given, makes the place for so many bytes of record: whoever sends
   * one record after the other can use the same place again. At once when the cipher is.
   */
  seal(plaintext: Uint8Array, final: boolean, room?: Room): Now<Uint8Array>;
}

/** A sealer that puts several messages into one record, where the other side knows how to read that. */
export interface PackingSealer extends Sealer {
  /** Opens as the messages, one by one. Together, with their lengths, they are as long as a plaintext may be. */
  pack(messages: readonly Uint8Array[], final: boolean): Now<Uint8Array>;
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
): Promise<Sealer> {
  return sealerFrom(await frameKey(baseKey, suites[suite], KID, aead), 0, 0);
}

export async function createOpener(
  baseKey: Uint8Array,
  suite: SuiteId,
  aead: AeadFactory = webCryptoAead,
): Promise<Opener> {
  const key = await frameKey(baseKey, suites[suite], KID, aead);
  return openerFrom(key, suites[suite], 0, 0, false);
}

/**
 * Nonces and additional data of calls, by their length. Nobody reads them once a call has returned (`Aead`), and to hand
 * new ones to the runtime each time costs as much as encrypting a kilobyte.
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

/** One record. The caller never uses a counter twice under one key. */
function sealRecord(
  { salt, aead }: FrameKey,
  counter: number,
  flag: number,
  plaintext: Uint8Array,
  room: Room,
): Now<Uint8Array> {
  const made = aead.seal(nonceOf(salt, counter), additionalData(counter, flag), plaintext);
  return made instanceof Promise
    ? made.then((sealed) => frameRecord(counter, flag, sealed, room))
    : frameRecord(counter, flag, made, room);
}

/** What was sealed, with all that stands before it. */
function frameRecord(counter: number, flag: number, made: Uint8Array | ArrayBuffer, room: Room): Uint8Array {
  const sealed = made instanceof Uint8Array ? made : new Uint8Array(made);
  const length = 1 + headerLength(counter) + sealed.length;
  const record = room(sizeOf(length) + length);
  const at = writeLength(record, 0, length);
  record[at] = flag;
  record.set(sealed, writeHeader(record, at + 1, counter));
  return record;
}

/**
 * The plaintext of a record without its length, or what is wrong with it; at once when the cipher is, as agents open
 * ten records a second of each stream. `flags`: the highest flag byte with a meaning.
 */
function openRecord(
  { salt, aead }: FrameKey,
  counter: number,
  flags: number,
  record: Uint8Array,
): Now<Uint8Array | string> {
  const flag = record[0] ?? 0;
  if (flag > flags) return 'unknown flag';
  const frame = record.subarray(1);
  const aad = additionalData(counter, flag);
  const header = aad.length - 1;
  if (!startsWith(frame, aad, header)) return whyNot(frame);
  const opened = aead.open(nonceOf(salt, counter), aad, frame.subarray(header));
  return opened instanceof Promise ? opened.then(judgeOpened) : judgeOpened(opened);
}

function judgeOpened(plaintext: Uint8Array | undefined): Uint8Array | string {
  if (!plaintext) return 'not authentic';
  return plaintext.length > limits.sealSegmentBytes.value ? 'segment too large' : plaintext;
}

/** What is wrong with a header that is not the one expected. */
function whyNot(frame: Uint8Array): string {
  const header = decodeHeader(frame);
  if (!header) return 'malformed header';
  return header.kid === KID ? 'counter out of order' : 'unexpected key id';
}

/**
 * Seals with the `limits.sealFrames` counters from `first` on; on a lane, others seal with the same key. The first
 * `skip` of them were used already.
 */
export function sealerFrom(key: FrameKey, first: number, skip: number): PackingSealer {
  let counter = first + skip;
  let ended = false;
  const refused = (detail: string) => Promise.reject(new Error(detail));
  function seal(plaintext: Uint8Array, flag: number, room: Room = newRoom): Now<Uint8Array> {
    if (ended) return refused('sealing after the final record');
    if (counter - first >= limits.sealFrames.value) return refused('too many records under one key');
    if (plaintext.length > limits.sealSegmentBytes.value) {
      return Promise.reject(new RangeError('segment too large to seal'));
    }
    // Taken before anything is awaited, so that two calls can never share a counter.
    const own = counter++;
    ended = (flag & FINAL) !== 0;
    return sealRecord(key, own, flag, plaintext, room);
  }
  return {
    seal: (plaintext, final, room) => seal(plaintext, final ? FINAL : 0, room),
    pack: (messages, final) => seal(packMessages(messages), final ? PACKED | FINAL : PACKED),
  };
}

/** Opens what such a sealer sealed. `packs`: a record may hold several messages. */
export function openerFrom(key: FrameKey, { Nt }: Suite, first: number, skip: number, packs: boolean): Opener {
  const flags = packs ? FINAL | PACKED : FINAL;
  /** None for a body that comes whole. */
  let frames: FrameReader | undefined;
  let counter = first + skip;
  let ended = false;
  let broken: Refusal | undefined;

  const reader = () => {
    frames ??= createFrameReader(2 + Nt, limits.sealRecordBytes.value);
    return frames;
  };
  const isEmpty = () => !frames || frames.empty();

  const refused = (detail: string): Result<never> => {
    broken = refuse('seal_broken', undefined, `record ${counter - first}: ${detail}`);
    return no(broken);
  };

  /** What the next record says; `undefined` when it is not there yet. */
  function next(): Now<Result<readonly Opened[]> | undefined> {
    if (broken) return no(broken);
    const record = ended && !isEmpty() ? 'after' : reader().next();
    if (record === 'more') return undefined;
    return typeof record === 'string' ? refused(details[record]) : openNext(record);
  }

  function openNext(record: Uint8Array): Now<Result<readonly Opened[]>> {
    if (counter - first >= limits.sealFrames.value) return refused('too many records under one key');
    const opened = openRecord(key, counter, flags, record);
    return opened instanceof Promise ? opened.then((plaintext) => taken(record, plaintext)) : taken(record, opened);
  }

  function taken(record: Uint8Array, plaintext: Uint8Array | string): Result<readonly Opened[]> {
    if (typeof plaintext === 'string') return refused(plaintext);
    const flag = record[0] ?? 0;
    const final = (flag & FINAL) !== 0;
    const messages = flag & PACKED ? unpackMessages(plaintext) : [plaintext];
    if (!messages) return refused('malformed messages');
    counter++;
    ended = final;
    if (messages.length === 1) return ok([{ plaintext: messages[0] as Uint8Array, final }]);
    return ok(messages.map((message, at) => ({ plaintext: message, final: final && at === messages.length - 1 })));
  }

  async function openRest(): Promise<Result<readonly Opened[]>> {
    const all: Opened[] = [];
    for (;;) {
      const opened = await next();
      if (!opened) return ok(all);
      if (!opened.ok) return opened;
      all.push(...opened.value);
    }
  }

  return {
    async *open(chunk) {
      if (!broken) reader().push(chunk);
      for (;;) {
        const opened = await next();
        if (!opened) return;
        if (!opened.ok) {
          yield opened;
          return;
        }
        for (const one of opened.value) yield ok(one);
      }
    },
    openWhole(body) {
      const usual = !ended && isEmpty() ? cutAll(body, 2 + Nt, limits.sealRecordBytes.value) : undefined;
      if (usual?.length === 1 && !broken) return openNext(usual[0] as Uint8Array);
      reader().push(body);
      return openRest();
    },
    finished: () => ended && !broken && isEmpty(),
  };
}
