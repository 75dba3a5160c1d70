import { limits } from '../../shared/limits.ts';
import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { ok, type Result } from '../../shared/result.ts';
import { callerEnds, type Lane, openLane } from '../../shared/seal/lane.ts';
import type { Opener, PackingSealer } from '../../shared/seal/records.ts';
import type { Settings } from '../settings.ts';
import { SEALED } from './call.ts';
import { sealFor } from './setups.ts';
import { signLaneTicket, type TicketFacts } from './ticket.ts';

/** A lane to one agent, and what every request on it says in the same words. */
interface AgentLane {
  readonly lane: Lane;
  readonly attestation: string;
  readonly headers: LaneCall['headers'];
  /** ms since 1970. */
  readonly until: number;
  /** Number of the next request. */
  next: number;
}

/** One per isolate and agent. Whoever took a number has the lane it is of, whatever is put here later. */
const lanes = new Map<string, AgentLane>();

/** A request on a lane: its number is taken, and what it is has still to be sealed. */
export interface LaneCall {
  readonly headers: Readonly<Record<'content-type' | 'auricle-ticket', string>>;
  readonly sealer: PackingSealer;
  readonly opener: Opener;
  /** What it is, and its head: the first messages of its body. */
  readonly start: readonly [string, string];
  readonly freshSeal: boolean;
  readonly suite: number;
}

/** Takes the next number of the lane to the agent, which is made when there is none. Refuses with attestation_invalid. */
export function enterLane(
  entry: RosterEntry,
  facts: TicketFacts,
  head: unknown,
  settings: Settings,
  now: number,
): Result<LaneCall> | Promise<Result<LaneCall>> {
  const known = lanes.get(facts.agent);
  const usable =
    known && known.attestation === entry.attestation && known.until > now && known.next <= limits.laneRequests.value;
  if (usable) return ok(call(known, facts, head, false, now));
  return makeLane(entry, settings, now).then((made) =>
    made.ok ? ok(call(made.value.own, facts, head, made.value.fresh, now)) : made,
  );
}

function call(own: AgentLane, facts: TicketFacts, head: unknown, freshSeal: boolean, now: number): LaneCall {
  const number = own.next;
  own.next += 1;
  const { sealer, opener } = callerEnds(own.lane, number);
  const told = JSON.stringify({
    jti: facts.id,
    tenant: facts.tenant,
    class: facts.class,
    model: facts.model,
    iat: Math.floor(now / 1_000),
    deadlineMs: limits.requestMs.value,
  });
  return {
    headers: own.headers,
    sealer,
    opener,
    start: [told, JSON.stringify(head)],
    freshSeal,
    suite: own.lane.suite,
  };
}

/** The agent did not accept it: the next request makes a new one. */
export function forgetLane(agent: string): void {
  lanes.delete(agent);
}

async function makeLane(
  entry: RosterEntry,
  settings: Settings,
  now: number,
): Promise<Result<{ own: AgentLane; fresh: boolean }>> {
  const { attestation } = entry;
  const { agent } = entry.description;
  const sealed = await sealFor(entry, settings, now);
  if (!sealed.ok) return sealed;
  const { seal, fresh } = sealed.value;
  const ticket = await signLaneTicket(agent, seal, settings, now);
  const lane = await openLane(seal.setup, ticket);
  const own = {
    lane,
    attestation,
    headers: { 'content-type': SEALED, 'auricle-ticket': ticket },
    until: seal.until,
    next: 1,
  };
  lanes.delete(agent);
  const [oldest] = lanes.keys();
  if (oldest !== undefined && lanes.size >= limits.rosterAgents.value) lanes.delete(oldest);
  lanes.set(agent, own);
  return ok({ own, fresh });
}
