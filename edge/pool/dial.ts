import { limits } from '../../shared/limits.ts';
import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { isReason, type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { createOpener, createSealer, type Opener } from '../../shared/seal/records.ts';
import { sealStream } from '../../shared/seal/streams.ts';
import { late, type Surroundings, within } from '../clock.ts';
import type { Settings } from '../settings.ts';
import { forgetSeal, sealFor } from './setups.ts';
import { signTicket, type TicketFacts } from './ticket.ts';

/** Content type of both directions between edge and agent. */
const SEALED = 'application/auricle-sealed';

export interface Call {
  readonly entry: RosterEntry;
  readonly facts: TicketFacts;
  /** First record: what the agent needs to know about the body. */
  readonly head: unknown;
  readonly body: ReadableStream<Uint8Array>;
  /** Ends the call: the agent stops working, the body is left alone. */
  readonly signal: AbortSignal;
}

export interface Line {
  readonly answer: ReadableStream<Uint8Array>;
  readonly opener: Opener;
  /** A seal was set up for this call. */
  readonly freshSeal: boolean;
  readonly suite: number;
}

/** What an agent may say in plain HTTP; anything else it says means it is not our agent. */
const plainRefusals: ReadonlySet<string> = new Set([
  'ticket_invalid',
  'ticket_replayed',
  'misdirected',
  'seal_broken',
  'pool_busy',
]);

/**
 * Calls an agent: seals the body to it while it streams, and returns as soon as the answer starts, which is before
 * the body was read. Refuses with what the agent said, `attestation_invalid`, or `pool_lost`.
 */
export async function dial(call: Call, settings: Settings, surroundings: Surroundings): Promise<Result<Line>> {
  const { entry, facts, signal } = call;
  const { agent, endpoint } = entry.description;
  if (settings.mode === 'production' && !endpoint.startsWith('https:')) {
    return no(refuse('pool_lost', undefined, 'the endpoint is not HTTPS'));
  }
  const sealed = await sealFor(entry, settings, surroundings.now());
  if (!sealed.ok) return sealed;
  const { seal, fresh } = sealed.value;
  const { setup } = seal;
  const ticket = await signTicket(facts, seal, settings, surroundings.now());
  const keys = await setup.keysFor(ticket);
  const [sealer, opener] = await Promise.all([
    createSealer(keys.request, setup.suite),
    createOpener(keys.answer, setup.suite),
  ]);
  const request = fetch(`${endpoint.replace(/\/$/, '')}/v1/short`, {
    method: 'POST',
    headers: {
      'content-type': SEALED,
      'auricle-ticket': ticket,
      'auricle-enc': Buffer.from(setup.enc).toString('base64url'),
    },
    body: sealStream(new TextEncoder().encode(JSON.stringify(call.head)), call.body, sealer),
    redirect: 'manual',
    signal,
    // Node's fetch wants it said that the answer may come before the body has gone; the Workers runtime knows.
    ...({ duplex: 'half' } as object),
  });
  let response: Response | typeof late;
  try {
    response = await within(request, limits.answerStartMs.value, surroundings);
  } catch {
    return no(refuse('pool_lost', undefined, 'not reachable'));
  }
  if (response === late) return no(refuse('pool_lost', undefined, 'no answer in time'));
  if (response.status === 200 && response.body && response.headers.get('content-type') === SEALED) {
    return ok({ answer: response.body, opener, freshSeal: fresh, suite: setup.suite });
  }
  const refusal = await readPlainRefusal(response);
  if (refusal.reason === 'seal_broken' || refusal.reason === 'misdirected') forgetSeal(agent);
  return no(refusal);
}

async function readPlainRefusal(response: Response): Promise<Refusal> {
  let said: unknown;
  try {
    said = await response.json();
  } catch {
    // Not JSON: some proxy answered in the agent's place.
  }
  const reason = typeof said === 'object' && said !== null && 'reason' in said ? said.reason : undefined;
  if (isReason(reason) && plainRefusals.has(reason)) return refuse(reason, undefined, `agent: ${response.status}`);
  return refuse('pool_lost', undefined, `agent answered ${response.status}`);
}
