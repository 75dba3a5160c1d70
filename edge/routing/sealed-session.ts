import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { ROSTER_AGENTS_MAX } from '../../shared/pool/limits.ts';
import { ok, type Result } from '../../shared/result.ts';
import type { Opener, PackingSealer } from '../../shared/seal/records.ts';
import {
  edgeCounters,
  openSealedSession,
  SESSION_REQUESTS_MAX,
  type SessionKeys,
} from '../../shared/seal/sealed-session.ts';
import type { Settings } from '../settings.ts';
import { SEALED } from './call.ts';
import { sealFor } from './setups.ts';
import { REQUEST_MS, signLaneTicket, type TicketFacts } from './ticket.ts';

/** A sealed session with one agent (PROTOCOL.md §7): one ticket and two keys for all its requests. */
interface SealedSession {
  readonly keys: SessionKeys;
  readonly attestation: string;
  readonly headers: SealedRequest['headers'];
  /** ms since 1970. */
  readonly expires: number;
  /** Number of the next request. */
  next: number;
}

/** Sessions of this isolate by agent. A request keeps the session that its number belongs to when it is replaced here. */
const sessions = new Map<string, SealedSession>();

/** A request of a session. Its number is taken; its first record is still to be sealed. */
export interface SealedRequest {
  readonly headers: Readonly<Record<'content-type' | 'auricle-ticket', string>>;
  readonly sealer: PackingSealer;
  readonly opener: Opener;
  /** Messages of the first record: the facts of the request, and its head. */
  readonly start: readonly [string, string];
  /** Whether the HPKE set-up was made for this request; the record of the request says so. */
  readonly freshSeal: boolean;
  readonly suite: number;
}

/** Content of the first record of a request. */
interface FirstRecord {
  readonly facts: TicketFacts;
  readonly head: unknown;
}

/** Takes the next number of the session with the agent, and makes a session if there is none. Refuses with `attestation_invalid`. */
export async function sealRequest(
  entry: RosterEntry,
  first: FirstRecord,
  settings: Settings,
  now: number,
): Promise<Result<SealedRequest>> {
  const cached = sessions.get(first.facts.agent);
  if (cached && isUsable(cached, entry, now)) return ok(takeNumber(cached, first, false, now));
  const made = await makeSession(entry, settings, now);
  return made.ok ? ok(takeNumber(made.value.session, first, made.value.fresh, now)) : made;
}

/** Drops the session that an agent did not accept: the next request makes another. */
export function forgetSession(agent: string): void {
  sessions.delete(agent);
}

const isUsable = ({ attestation, expires, next }: SealedSession, entry: RosterEntry, now: number): boolean =>
  attestation === entry.attestation && expires > now && next <= SESSION_REQUESTS_MAX;

function takeNumber(
  session: SealedSession,
  { facts, head }: FirstRecord,
  freshSeal: boolean,
  now: number,
): SealedRequest {
  const number = session.next;
  session.next += 1;
  const first = JSON.stringify({
    jti: facts.id,
    tenant: facts.tenant,
    class: facts.class,
    model: facts.model,
    revision: facts.revision,
    iat: Math.floor(now / 1_000),
    deadlineMs: REQUEST_MS,
  });
  const { headers, keys } = session;
  const start = [first, JSON.stringify(head)] as const;
  return { headers, ...edgeCounters(keys, number), start, freshSeal, suite: keys.suite };
}

async function makeSession(
  entry: RosterEntry,
  settings: Settings,
  now: number,
): Promise<Result<{ session: SealedSession; fresh: boolean }>> {
  const { attestation } = entry;
  const { agent } = entry.description;
  const sealed = await sealFor(entry, settings, now);
  if (!sealed.ok) return sealed;
  const { seal, fresh } = sealed.value;
  const ticket = await signLaneTicket(agent, seal, settings, now);
  const keys = await openSealedSession(seal.setup, ticket);
  const headers = { 'content-type': SEALED, 'auricle-ticket': ticket };
  const session = { keys, attestation, headers, expires: seal.until, next: 1 };
  sessions.delete(agent);
  // Maps keep the order of insertion, so the first entry is the oldest.
  const [oldest] = sessions.keys();
  if (oldest !== undefined && sessions.size >= ROSTER_AGENTS_MAX) sessions.delete(oldest);
  sessions.set(agent, session);
  return ok({ session, fresh });
}
