import { z } from 'zod';
import { concat } from '../bytes.ts';
import { isReason, type Reason } from '../refusal.ts';

/** Tasks that the edge requests of an agent for KServe v2 clients; `shared/pool/PROTOCOL.md` defines each. */
export const callTasks = ['infer', 'generate', 'generate_stream', 'metadata', 'config', 'stats'] as const;
export type CallTask = (typeof callTasks)[number];

/** Compression both sides know. `deflate` is the zlib format (RFC 1950), as HTTP says. */
export const encodings = ['gzip', 'deflate'] as const;
export type Encoding = (typeof encodings)[number];

/** Record 0 of such a request; the records behind it are the caller's body, unchanged. */
export const callHead = z.object({
  v: z.literal(1),
  task: z.enum(callTasks),
  model: z.string(),
  /** The version that the address names, digits. */
  version: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional(),
  /** The header `inference-header-content-length` as it was sent. */
  headerLength: z.string().max(20).optional(),
  encoding: z.enum(encodings).optional(),
  /** Content codings that the client accepts. */
  accept: z.enum(encodings).optional(),
  /** The sequence that the agent was chosen by. */
  sequence: z.string().optional(),
  /** Owner of the sequence: a digest of the token's subject. */
  caller: z.string().max(64).optional(),
  /** Digest of the caller's header `x-auricle-session`. */
  session: z.string().max(64).optional(),
});
export type CallHead = z.infer<typeof callHead>;

/** The name of a sequence where an agent is chosen; a number and its digits as text choose the same one. */
export const sequenceName = (id: string | number): string => String(id);

/**
 * Events of an agent's answer: `ready` first, then `answer`, the body and `final`, with any number of
 * `keepalive` between them. A `refusal` may replace any of them and is the last.
 */
export const callEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), agent: z.string(), model: z.string(), revision: z.string() }),
  z.object({ type: z.literal('keepalive') }),
  z.object({
    type: z.literal('answer'),
    /** For the caller, names in lower case. */
    headers: z.record(z.string(), z.string()),
    /** Length of the body; absent when it comes as it is made. */
    bytes: z.number().int().nonnegative().optional(),
  }),
  z.object({
    type: z.literal('final'),
    model: z.string(),
    revision: z.string(),
    /** Sound that was sent to a model for speech. */
    durationSeconds: z.number().nonnegative(),
  }),
  z.object({
    type: z.literal('refusal'),
    reason: z.custom<Reason>(isReason),
    params: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
    /** Seconds until another try may succeed. */
    retryAfter: z.number().positive().optional(),
  }),
]);
export type CallEvent = z.infer<typeof callEvent>;
/** A piece of the body of an answer. */
export interface BodyPiece {
  readonly type: 'body';
  readonly bytes: Uint8Array;
}

/** First byte of a record that holds a piece of the body; JSON cannot begin with it. */
const BODY = 0;

export const encodeBody = (bytes: Uint8Array): Uint8Array => concat(Uint8Array.of(BODY), bytes);

/** Reads a record of the answer; `undefined` when this version does not know it. */
export function readCallRecord(record: Uint8Array): CallEvent | BodyPiece | undefined {
  if (record[0] === BODY) return { type: 'body', bytes: record.subarray(1) };
  try {
    return callEvent.safeParse(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(record))).data;
  } catch {
    return undefined;
  }
}
