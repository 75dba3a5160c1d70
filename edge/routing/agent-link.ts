import { compactVerify, decodeJwt, importJWK } from 'jose';
import { type AuditEvent, auditEvent } from '../../shared/audit/event.ts';
import { describeOffset } from '../../shared/clock-offset.ts';
import type { AgentDescription } from '../../shared/pool/description.ts';
import { type AgentMessage, agentMessage, type Load } from '../../shared/pool/heartbeat.ts';
import { refuse } from '../../shared/refusal.ts';
import { HEARTBEAT_BYTES } from '../../shared/registry/live-report.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Attested } from '../../shared/seal/attestation.ts';
import { createEvent } from '../ledger/create-event.ts';

/** Distinguishable starts of an agent within one second; more are a fault. */
export const ROSTER_BOOTS_MAX = 8;

/** An agent whose hello was verified. */
export interface Agent {
  readonly description: AgentDescription;
  readonly attestation: string;
  readonly signKey: Awaited<ReturnType<typeof importJWK>>;
  readonly boot: string;
  readonly seq: number;
  /** Earlier boots whose attestations were issued in the same second; see `LastMessage`. */
  readonly earlier: readonly string[];
  /** Seconds since 1970 at which the attestation begins and ends. */
  readonly issued: number;
  readonly expires: number;
  /** Time at which the roster accepted the connection, ms since 1970. */
  readonly opened: number;
  /** Absent until the first report. */
  readonly load: Load | undefined;
  /** Time of the last message, ms since 1970. */
  readonly heard: number;
  /** Generation of the agent's release map; absent when it takes none, and until the first report. */
  readonly release?: number | undefined;
}

/** Pool and zone that the agent's access token allows. */
export interface Admission {
  readonly pool: string;
  readonly zone: string;
}

export type Attest = (token: string) => Promise<Result<Attested>>;

/**
 * Last boot and sequence number of an agent, over all its connections. Each boot has an attestation of its
 * own, whose issue time orders boots. `earlier`: boots of the same second, at most `ROSTER_BOOTS_MAX`.
 */
export type LastMessage = Readonly<Pick<Agent, 'boot' | 'seq' | 'issued' | 'earlier'>>;

const invalid = (detail: string): Result<never> => no(refuse('heartbeat_invalid', { rule: detail }, detail));
/**
 * Refuses an agent whose clock is wrong: it would refuse each ticket of the edge as expired or from the future. The agent
 * signs a message after its connection opened and before the message arrives. A message may wait while the edge or the
 * network stands still, so its age by itself proves nothing.
 */
const wrongClock = (at: number, opened: number, now: number): Result<never> | undefined => {
  const offset = describeOffset("the agent's", at, Math.min(now, Math.max(at, opened)));
  return offset === undefined ? undefined : invalid(offset);
};
const stale = (detail: string): Result<never> => no(refuse('attestation_stale', { rule: detail }, detail));

export interface HelloContext {
  readonly admission: Admission;
  readonly attest: Attest;
  /** Returns the last message of the agent of this name. */
  readonly lastMessageOf: (agent: string) => LastMessage | undefined;
  /** Time at which the roster accepted the connection, ms since 1970. */
  readonly opened: number;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/**
 * Verifies a hello. Refuses with `heartbeat_invalid` or `attestation_invalid`; a hello that was sent before is refused
 * on every connection. Refuses with `attestation_stale` when another process of that name has a newer attestation.
 */
export async function readHello(text: string, context: HelloContext): Promise<Result<Agent>> {
  const { admission, attest, lastMessageOf, opened, now } = context;
  if (text.length > HEARTBEAT_BYTES) return invalid('message too large');
  const claimed = peek(text);
  if (claimed?.type !== 'hello') return invalid('the first message is not a hello');
  const { description, attestation, boot, seq } = claimed;
  if (description.pool !== admission.pool || description.zone !== admission.zone) {
    return invalid('pool or zone differ from the token');
  }
  // The clock is checked before the signature: a wrong one is a frequent cause of a refused attestation.
  const wrong = wrongClock(claimed.at, opened, now);
  if (wrong) return wrong;
  const attested = await attest(attestation);
  // The detail names a check or claim of the agent's own attestation.
  if (!attested.ok) return no({ ...attested.refusal, params: { rule: attested.refusal.detail ?? 'not verified' } });
  if (attested.value.agent !== description.agent) return invalid('the attestation is of another agent');
  const signKey = await importJWK(attested.value.signKey, 'ES256');
  if (!(await verifies(text, signKey, description.agent))) return invalid('bad signature');
  const issued = decodeJwt(attestation).iat ?? 0;
  const earlier = readEarlier({ boot, seq, issued }, lastMessageOf(description.agent));
  if (!earlier.ok) return earlier;
  const { expires } = attested.value;
  const times = { issued, expires, opened, heard: now };
  return ok({ description, attestation, signKey, boot, seq, earlier: earlier.value, load: undefined, ...times });
}

/**
 * Returns the boots before this one, as in `LastMessage`. The newest attestation wins: a process that another has replaced
 * gets back in when it attests again, and a recorded hello has an old attestation.
 */
function readEarlier(hello: Omit<LastMessage, 'earlier'>, last: LastMessage | undefined): Result<readonly string[]> {
  if (!last) return ok([]);
  const { boot, seq, issued } = hello;
  if (boot === last.boot) return seq > last.seq ? ok(last.earlier) : invalid('hello was seen before');
  if (issued > last.issued) return ok([]);
  if (issued < last.issued || last.earlier.includes(boot)) return stale('hello of an earlier boot');
  const { length } = last.earlier;
  return length < ROSTER_BOOTS_MAX ? ok([...last.earlier, last.boot]) : stale('too many boots in a second');
}

/** Verifies a later message and returns the agent's new state and, for an audit message, its events. */
export async function readMessage(
  text: string,
  agent: Agent,
  now: number,
): Promise<Result<{ agent: Agent; events: readonly AuditEvent[]; ack: number | undefined }>> {
  if (text.length > HEARTBEAT_BYTES) return invalid('message too large');
  if (!(await verifies(text, agent.signKey, agent.description.agent))) return invalid('bad signature');
  const message = peek(text);
  if (!message || message.type === 'hello') return invalid('not a report');
  if (message.boot !== agent.boot) return invalid('wrong boot');
  if (message.seq <= agent.seq) return invalid('sequence number was used before');
  if (agent.expires * 1_000 <= now) return invalid('the attestation has expired');
  const { seq } = message;
  if (message.type === 'audit') {
    const events = readEvents(message.events, agent.description.agent, now);
    return ok({ agent: { ...agent, seq, heard: now }, events, ack: seq });
  }
  const wrong = wrongClock(message.at, agent.opened, now);
  if (wrong) return wrong;
  const { models = agent.description.models, load, release } = message;
  const description = { ...agent.description, models };
  return ok({ agent: { ...agent, seq, heard: now, load, release, description }, events: [], ack: undefined });
}

/**
 * Returns the events in the recorded shape, without unknown members, under the name of the verified sender. A
 * malformed event would be malformed on every retry: it is acknowledged, and a gap replaces it.
 */
function readEvents(raw: readonly unknown[], producer: string, now: number): AuditEvent[] {
  const events = raw.flatMap((one) => auditEvent.safeParse(one).data ?? []);
  const lost = raw.length - events.length;
  const gap = lost > 0 ? [createEvent({ type: 'gap', lost, from: 0, to: 0 }, now)] : [];
  return [...events, ...gap].map((event) => ({ ...event, producer }));
}

/** Decodes the message before it is verified. */
function peek(jws: string): AgentMessage | undefined {
  try {
    const payload: unknown = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return agentMessage.safeParse(payload).data;
  } catch {
    return undefined;
  }
}

async function verifies(jws: string, key: Agent['signKey'], name: string): Promise<boolean> {
  try {
    const { protectedHeader } = await compactVerify(jws, key, { algorithms: ['ES256'] });
    return protectedHeader.kid === name;
  } catch {
    return false;
  }
}
