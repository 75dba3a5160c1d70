import { base64url } from 'jose';
import { z } from 'zod';
import { ascii, bigEndian, concat, KiB } from '../bytes.ts';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { isTenantName } from '../tenant/claims.ts';
import { SEAL_SEGMENT_BYTES } from './limits.ts';
import type { SealPrivateKey } from './setup.ts';
import { isSuite, type SuiteId, suites } from './suites.ts';
import { unwrap, wrap } from './wrap.ts';
import type { ZoneKey } from './zone-key.ts';

/** Head of a sealed file, read alone: with the names and the wrapped key it has under 1 KiB. */
export const UPLOAD_HEAD_BYTES = 4 * KiB;

// The head of a sealed file (PROTOCOL.md §10): its owner, and the key of its records, wrapped to the zone key.
// envelope-stream.ts reads and writes the records.

const magic = ascii('AURICLE1');
/** Before the JSON: the magic and its length. */
const START = magic.length + 2;

/**
 * Identity of a file. All three are bound into the wrapping of its key, so that no file passes for another.
 */
export interface FileFacts {
  readonly tenant: string;
  /** Id of the upload, or of the text project, that the file belongs to. */
  readonly upload: string;
  /** Name within the upload: `upload`, or an outcome with its run, `1/pieces/3`, `1/transcript`. */
  readonly name: string;
}

/** One spelling of the same bytes: no padding, no stray bits in the last character. */
function isEncoded(text: string): boolean {
  try {
    return base64url.encode(base64url.decode(text)) === text;
  } catch {
    return false;
  }
}
const encoded = z.string().max(256).refine(isEncoded);

const head = z.strictObject({
  v: z.literal(1),
  suite: z.number().int(),
  /** Id of the zone key: its RFC 7638 thumbprint. */
  key: encoded.length(43),
  enc: encoded.length(87),
  wrapped: encoded,
  tenant: z.string().refine(isTenantName),
  upload: z.string().regex(/^[a-z0-9-]{1,64}$/),
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}(\/[a-z0-9-]{1,32}){0,3}$/),
});

export type EnvelopeHead = z.infer<typeof head> & { readonly suite: SuiteId };

/** A file to be written: its head, and the base key of its records for `createSealer`. */
export interface Envelope {
  readonly head: Uint8Array<ArrayBuffer>;
  readonly suite: SuiteId;
  readonly baseKey: Uint8Array;
}

/** A fresh key for one file, wrapped to a zone. Throws for facts that are not well formed: they are our own. */
export async function createEnvelope(facts: FileFacts, zone: ZoneKey, suite: SuiteId = 5): Promise<Envelope> {
  const baseKey = crypto.getRandomValues(new Uint8Array(suites[suite].Nh));
  const { enc, wrapped } = await wrap(zone.jwk, baseKey, bindingOf(facts, zone.kid, suite));
  const { tenant, upload, name } = facts;
  const full = {
    v: 1,
    suite,
    key: zone.kid,
    enc: base64url.encode(enc),
    wrapped: base64url.encode(wrapped),
    tenant,
    upload,
    name,
  };
  const json = ascii(JSON.stringify(head.parse(full)));
  return { head: concat(magic, bigEndian(BigInt(json.length), 2), json), suite, baseKey };
}

/**
 * Reads the head from the first bytes of a file, without a key, and the offset of its records.
 * Unauthenticated until the file is opened. Needs `UPLOAD_HEAD_BYTES` bytes, or the whole file; refuses
 * with `seal_broken`.
 */
export function readHead(start: Uint8Array): Result<{ readonly head: EnvelopeHead; readonly length: number }> {
  const length = headLength(start);
  if (typeof length === 'string') return broken(length);
  if (length === undefined || start.length < length) return broken('ends within the head');
  const parsed = parseHead(start.subarray(START, length));
  return parsed ? ok({ head: parsed, length }) : broken('malformed head');
}

/** Bytes of the whole head; `undefined` while that cannot be known, a text when it is none. */
export function headLength(start: Uint8Array): number | string | undefined {
  if (!magic.subarray(0, start.length).every((byte, at) => start[at] === byte)) return 'not a sealed file';
  if (start.length < START) return undefined;
  const length = START + (start[START - 2] as number) * 256 + (start[START - 1] as number);
  return length > UPLOAD_HEAD_BYTES ? 'head too long' : length;
}

/** `known` finds the private half of a zone key. Refuses with `seal_broken`, whatever is wrong. */
export async function unwrapHead(
  { suite, key, enc, wrapped, tenant, upload, name }: EnvelopeHead,
  expected: FileFacts,
  known: (key: string) => SealPrivateKey | undefined | Promise<SealPrivateKey | undefined>,
): Promise<Result<Uint8Array>> {
  if (tenant !== expected.tenant) return broken('of another tenant');
  if (upload !== expected.upload) return broken('of another upload');
  if (name !== expected.name) return broken('another file of the upload');
  const privateKey = await known(key);
  if (!privateKey) return broken('sealed to a key that this agent does not have');
  const box = { enc: base64url.decode(enc), wrapped: base64url.decode(wrapped) };
  const baseKey = await unwrap(privateKey, box, bindingOf(expected, key, suite));
  return baseKey?.length === suites[suite].Nh ? ok(baseKey) : broken('the key does not unwrap');
}

/** Bytes of the sealed file, for stores that want to know before. */
export function sealedBytes(headBytes: number, plainBytes: number, suite: SuiteId = 5): number {
  const full = SEAL_SEGMENT_BYTES;
  const records = Math.floor(plainBytes / full);
  let sum = headBytes;
  for (let counter = 0; counter < records; counter += 1) sum += recordBytes(full, counter, suite);
  return sum + recordBytes(plainBytes % full, records, suite);
}

function recordBytes(plain: number, counter: number, suite: SuiteId): number {
  const header = counter < 8 ? 1 : 1 + Math.ceil(Math.log2(counter + 1) / 8);
  const inner = 1 + header + plain + suites[suite].Nt;
  return inner + (inner < 64 ? 1 : inner < 2 ** 14 ? 2 : 4);
}

/** No name has a NUL, so no two files have the same bytes here. */
function bindingOf({ tenant, upload, name }: FileFacts, key: string, suite: SuiteId) {
  return {
    info: concat(ascii('auricle file 1'), bigEndian(BigInt(suite), 2), ascii(key)),
    aad: ascii(`${tenant}\0${upload}\0${name}`),
  };
}

function parseHead(bytes: Uint8Array): EnvelopeHead | undefined {
  let text: string;
  let json: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  const parsed = head.safeParse(json);
  if (!parsed.success || !isSuite(parsed.data.suite)) return undefined;
  // One meaning has one spelling: other spaces or another order would be another file with the same key.
  const { v, suite, key, enc, wrapped, tenant, upload, name } = parsed.data;
  const spelled = { v, suite, key, enc, wrapped, tenant, upload, name };
  return JSON.stringify(spelled) === text ? { ...spelled, suite } : undefined;
}

export const broken = (detail: string) => no(refuse('seal_broken', undefined, `file: ${detail}`));
