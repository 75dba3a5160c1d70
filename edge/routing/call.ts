import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { clampRetry, isReason, type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { createOpener, createSealer, type Opener, type Sealer } from '../../shared/seal/records.ts';
import { late, type Runtime, within } from '../clock.ts';
import type { Settings } from '../settings.ts';
import { endpointOf } from './endpoint.ts';
import { forgetSeal, sealFor } from './setups.ts';
import { signTicket, type TicketFacts } from './ticket.ts';

/** Address, headers and keys of a call to an agent. */
export interface Preparation {
  /** Address of the agent, without a slash at the end. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<'auricle-ticket' | 'auricle-enc', string>>;
  readonly sealer: Sealer;
  readonly opener: Opener;
  /** A seal was set up for this call. */
  readonly freshSeal: boolean;
  readonly suite: number;
}

/** Content type of both directions between edge and agent. */
export const SEALED = 'application/auricle-sealed';

/** Refusals that an agent sends over plain HTTP; any other answer is not an agent's. */
const plainRefusals: ReadonlySet<string> = new Set([
  'ticket_invalid',
  'ticket_replayed',
  'misdirected',
  'seal_broken',
  'pool_busy',
]);

/**
 * Makes a ticket, and keys for both directions. Refuses with `attestation_invalid`, or with `pool_lost` over
 * plain HTTP.
 */
export async function prepareCall(
  entry: RosterEntry,
  facts: TicketFacts,
  settings: Settings,
  runtime: Runtime,
): Promise<Result<Preparation>> {
  const endpoint = endpointOf(entry, settings);
  if (!endpoint.ok) return endpoint;
  const sealed = await sealFor(entry, settings, runtime.now());
  if (!sealed.ok) return sealed;
  const { seal, fresh } = sealed.value;
  const { setup } = seal;
  const ticket = await signTicket(facts, seal, settings, runtime.now());
  const keys = await setup.keysFor(ticket);
  const [sealer, opener] = await Promise.all([
    createSealer(keys.request, setup.suite),
    createOpener(keys.answer, setup.suite),
  ]);
  const headers = { 'auricle-ticket': ticket, 'auricle-enc': Buffer.from(setup.enc).toString('base64url') };
  return ok({ endpoint: endpoint.value, headers, sealer, opener, freshSeal: fresh, suite: setup.suite });
}

/** Returns the answer's head, or `pool_lost` when there is none within `ms`. */
export async function awaitAnswer(request: Promise<Response>, ms: number, runtime: Runtime): Promise<Result<Response>> {
  let response: Response | typeof late;
  try {
    response = await within(request, ms, runtime);
  } catch {
    return no(refuse('pool_lost', undefined, 'not reachable'));
  }
  return response === late ? no(refuse('pool_lost', undefined, 'no answer in time')) : ok(response);
}

/** Reads the agent's refusal. After a refusal of the seal the next call sets up a new one. */
export async function readPlainRefusal(response: Response, agent: string): Promise<Refusal> {
  let body: unknown;
  try {
    body = await response.json();
  } catch {
    // A proxy answered instead of the agent.
  }
  const reason = typeof body === 'object' && body !== null && 'reason' in body ? body.reason : undefined;
  if (reason === 'seal_broken' || reason === 'misdirected') forgetSeal(agent);
  if (isReason(reason) && plainRefusals.has(reason)) {
    return { ...refuse(reason, undefined, `agent: ${response.status}`), ...readRetry(body) };
  }
  return refuse('pool_lost', undefined, `agent answered ${response.status}`);
}

/** Reads the agent's estimate of when it has a free slot; older agents send none. */
function readRetry(body: unknown): Pick<Refusal, 'retryAfter'> {
  const seconds = typeof body === 'object' && body !== null && 'retryAfter' in body ? body.retryAfter : undefined;
  return typeof seconds === 'number' && seconds > 0 ? { retryAfter: clampRetry(seconds * 1_000) } : {};
}
