import type { IncomingMessage } from 'node:http';
import type { JSONWebKeySet } from 'jose';
import { concat } from '../../../../shared/bytes.ts';
import { CLOCK_SKEW_S } from '../../../../shared/clock-offset.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { TICKET_S } from '../../../../shared/seal/limits.ts';
import type { Opened, PackingSealer } from '../../../../shared/seal/records.ts';
import { agentCounters, NUMBER_BYTES, numberAt, openSealedSession } from '../../../../shared/seal/sealed-session.ts';
import { openRead } from '../../../../shared/seal/streams.ts';
import { nodeAead } from '../identity/aead.ts';
import { type Keys, SEAL_SETUPS_MAX, sha256 } from '../identity/keys.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { Doorway } from '../request/admit.ts';
import type { AgentContext } from '../request/agent-context.ts';
import type { ReadSession, SealedSession } from '../request/read-session.ts';
import { createSessionTicketReader, type Facts, requestFacts } from '../request/ticket.ts';
import { bodyOf } from './body.ts';

/** Longest arrival of request headers at an agent. */
export const AGENT_HEADER_MS = 10_000;

/** Verifies the ticket of a session once and caches the session: its keys serve all requests with that ticket. */
export function createSessionReader(agent: string, edgeKeys: JSONWebKeySet, keys: Pick<Keys, 'setup'>): ReadSession {
  const readTicket = createSessionTicketReader(agent, edgeKeys);
  const cache = new Map<string, SealedSession>();
  return async (token, now) => {
    const cached = cache.get(token);
    if (cached && now < (cached.ticket.exp + CLOCK_SKEW_S) * 1_000) return ok(cached);
    cache.delete(token);
    const read = await readTicket(token, now);
    if (!read.ok) return read;
    const { enc, suite, att } = read.value;
    const bytes = new Uint8Array(Buffer.from(enc, 'base64url'));
    const setup = await keys.setup({ enc: bytes, suite, attestationDigest: att, now });
    if (!setup.ok) return setup;
    const session = {
      ticket: read.value,
      name: sha256(token),
      keys: await openSealedSession(setup.value, token, nodeAead),
    };
    // Maps keep the order of insertion, so the first entry is the oldest.
    const [oldest] = cache.keys();
    if (cache.size >= SEAL_SETUPS_MAX && oldest !== undefined) cache.delete(oldest);
    cache.set(token, session);
    return ok(session);
  };
}

/** An admitted request: of its body only the first message was read. */
export interface AdmittedRequest {
  readonly ticket: Facts;
  readonly model: ServedModel;
  readonly sealer: PackingSealer;
  readonly records: AsyncGenerator<Result<Opened>>;
}

const invalid = (detail: string) => no(refuse('ticket_invalid', undefined, `session: ${detail}`));

/**
 * Admits a request by the ticket of its session and the facts in the first record of its body, which has
 * `AGENT_HEADER_MS` to arrive. Every refusal is plain HTTP.
 */
export async function admitRequest(
  context: Pick<AgentContext, 'now' | 'readSession' | 'model' | 'replays'>,
  incoming: IncomingMessage,
  enter: Doorway['enter'],
): Promise<Result<AdmittedRequest>> {
  const token = incoming.headers['auricle-ticket'];
  if (typeof token !== 'string') return invalid('no ticket');
  const session = await context.readSession(token, context.now());
  if (!session.ok) return session;
  const reader = bodyOf(incoming).getReader();
  const late = setTimeout(() => reader.cancel().catch(() => {}), AGENT_HEADER_MS);
  try {
    const start = await readStart(reader);
    const number = start && numberAt(start);
    const admitted =
      number === undefined
        ? invalid('number')
        : await admitFirst({ context, enter, session: session.value, number, reader, start });
    if (!admitted.ok) await reader.cancel().catch(() => {});
    return admitted;
  } finally {
    clearTimeout(late);
  }
}

/** Reads enough of a body for its number; `undefined` when the body is shorter. */
async function readStart(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
  let start = new Uint8Array();
  while (start.length < NUMBER_BYTES) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }) as const);
    if (done) return undefined;
    start = start.length === 0 ? (value as Uint8Array<ArrayBuffer>) : concat(start, value);
  }
  return start;
}

interface FirstRecord {
  readonly context: Pick<AgentContext, 'now' | 'model' | 'replays'>;
  readonly enter: Doorway['enter'];
  readonly session: SealedSession;
  readonly number: number;
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly start: Uint8Array | undefined;
}

async function admitFirst({
  context,
  enter,
  session: { name, keys },
  number,
  reader,
  start,
}: FirstRecord): Promise<Result<AdmittedRequest>> {
  const { sealer, opener } = agentCounters(keys, number);
  const records = openRead(reader, opener, start);
  const first = await records.next();
  // Only the holder of the ticket's key can seal.
  if (first.done || !first.value.ok) return invalid('no facts');
  const facts = requestFacts.safeParse(parse(first.value.value.plaintext)).data;
  if (!facts) return invalid('facts');
  const now = context.now();
  const expires = facts.iat + TICKET_S;
  const skew = CLOCK_SKEW_S;
  if (facts.iat > now / 1_000 + skew || expires + skew <= now / 1_000) return invalid('facts of another time');
  const model = context.model(facts.model, facts.revision);
  if (!model) return no(refuse('misdirected', undefined, 'model'));
  const entered = enter(facts);
  if (!entered.ok) return entered;
  // Two answers under one number would share nonces.
  const fresh = context.replays.admit({ jti: `${name} ${number}`, exp: expires }, now);
  if (!fresh.ok) return fresh;
  return ok({ ticket: facts, model, sealer, records });
}

function parse(plaintext: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(plaintext));
  } catch {
    return undefined;
  }
}
