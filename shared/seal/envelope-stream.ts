import { concat } from '../bytes.ts';
import { no, ok, type Result } from '../result.ts';
import { type AeadFactory, webCryptoAead } from './aead.ts';
import {
  broken,
  createEnvelope,
  type Envelope,
  type EnvelopeHead,
  type FileFacts,
  headLength,
  readHead,
  unwrapHead,
} from './envelope.ts';
import { createOpener, type Sealer, sealerFrom } from './records.ts';
import type { SealPrivateKey } from './setup.ts';
import { frameKey } from './sframe.ts';
import { openRead, sealStream } from './streams.ts';
import { suites } from './suites.ts';
import type { ZoneKey } from './zone-key.ts';

/**
 * Seals a body into a file. Reads on demand and holds at most one segment; an error of the body errors this
 * stream before its final record.
 */
export async function sealFile(
  facts: FileFacts,
  zone: ZoneKey,
  body: ReadableStream<Uint8Array>,
  aead: AeadFactory = webCryptoAead,
): Promise<ReadableStream<Uint8Array>> {
  return sealInto(await createEnvelope(facts, zone), body, aead);
}

/** Seals into an existing envelope, so that its length is known. */
export async function sealInto(
  envelope: Envelope,
  body: ReadableStream<Uint8Array>,
  aead: AeadFactory = webCryptoAead,
): Promise<ReadableStream<Uint8Array>> {
  const records = sealStream(undefined, body, await sealRecords(envelope, 0, aead));
  const reader = records.getReader();
  let head: Uint8Array | undefined = envelope.head;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (head) {
          controller.enqueue(head);
          head = undefined;
          return;
        }
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/**
 * Seals the records of a file from number `first` on, to resume an interrupted upload. Sealing a record again
 * is safe with the same plaintext only, which gives the same bytes; another plaintext under the same number
 * breaks both.
 */
export async function sealRecords(
  { baseKey, suite }: Pick<Envelope, 'baseKey' | 'suite'>,
  first: number,
  aead: AeadFactory = webCryptoAead,
): Promise<Sealer> {
  return sealerFrom(await frameKey(baseKey, suites[suite], 0n, aead), 0, first);
}

export interface Opening {
  readonly expected: FileFacts;
  /** The private half of a zone key that this process was given. */
  readonly known: (key: string) => SealPrivateKey | undefined | Promise<SealPrivateKey | undefined>;
  readonly aead?: AeadFactory;
  /** Called once, when the head was opened: what answers is sealed to the same key. */
  readonly opened?: (head: EnvelopeHead) => void;
}

/**
 * The plaintext of a file, segment by segment. Whatever is wrong is one refusal, `seal_broken`, which comes last: a file
 * that was cut off shows that only at its end. Leaving the loop early cancels the body.
 */
export async function* openFile(
  body: ReadableStream<Uint8Array>,
  { expected, known, aead = webCryptoAead, opened }: Opening,
): AsyncGenerator<Result<Uint8Array>> {
  const reader = body.getReader();
  let handed = false;
  try {
    const start = await readStart(reader);
    const head = readHead(start);
    if (!head.ok) return yield no(head.refusal);
    const baseKey = await unwrapHead(head.value.head, expected, known);
    if (!baseKey.ok) return yield no(baseKey.refusal);
    opened?.(head.value.head);
    const opener = await createOpener(baseKey.value, head.value.head.suite, aead);
    const rest = start.subarray(head.value.length);
    for await (const record of opener.open(rest)) {
      if (!record.ok) return yield no(record.refusal);
      yield ok(record.value.plaintext);
    }
    handed = true;
    for await (const record of openRead(reader, opener)) {
      yield record.ok ? ok(record.value.plaintext) : no(record.refusal);
    }
  } finally {
    if (!handed) await reader.cancel().catch(() => undefined);
  }
}

/** The first chunks, until the head is in them whole, or can be seen to be none. */
async function readStart(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array> {
  let start = new Uint8Array() as Uint8Array;
  for (;;) {
    const length = headLength(start);
    if (typeof length === 'string' || (length !== undefined && start.length >= length)) return start;
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }) as const);
    if (done) return start;
    start = start.length === 0 ? value : concat(start, value);
  }
}

/** A whole file at once, for what is small: a plan, a result. */
export async function sealSmall(
  facts: FileFacts,
  zone: ZoneKey,
  plaintext: Uint8Array,
  aead: AeadFactory = webCryptoAead,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(plaintext);
      controller.close();
    },
  });
  for await (const chunk of await sealFile(facts, zone, body, aead)) chunks.push(chunk);
  return concat(...chunks);
}

/** The whole plaintext of what is small; more than `limit` bytes of it are refused as broken. */
export async function openSmall(
  body: ReadableStream<Uint8Array>,
  opening: Opening,
  limit: number,
): Promise<Result<Uint8Array>> {
  const segments: Uint8Array[] = [];
  let bytes = 0;
  for await (const segment of openFile(body, opening)) {
    if (!segment.ok) return segment;
    bytes += segment.value.length;
    if (bytes > limit) return broken('longer than what it is for');
    segments.push(segment.value);
  }
  return ok(concat(...segments));
}
