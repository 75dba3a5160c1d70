import { limits } from '../../shared/limits.ts';
import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { concat } from '../../shared/seal/bytes.ts';
import type { Opened, Opener } from '../../shared/seal/records.ts';
import { sealAfter, sealPieces, sealStream } from '../../shared/seal/streams.ts';
import { readLength } from '../body-source.ts';
import type { Surroundings } from '../clock.ts';
import type { Settings } from '../settings.ts';
import { awaitAnswer, prepareCall, readPlainRefusal, SEALED } from './call.ts';
import { enterLane, forgetLane } from './lanes.ts';
import type { TicketFacts } from './ticket.ts';

export interface Call {
  readonly entry: RosterEntry;
  readonly facts: TicketFacts;
  /** First record: what the agent needs to know about the body. */
  readonly head: unknown;
  /** As it arrives; or whole, in pieces of at most a segment. */
  readonly body: ReadableStream<Uint8Array> | readonly Uint8Array[];
  /** Ends the call: the agent stops working, the body is left alone. */
  readonly signal: AbortSignal | undefined;
  /** How long the answer may take to start, ms; `limits.answerStartMs` by default. */
  readonly startMs?: number;
}

export interface Line {
  /** 200, with a sealed body. */
  readonly response: Response;
  /** Bytes of that body, if the agent said so. */
  readonly length: number | undefined;
  readonly opener: Opener;
  /** A seal was set up for this call. */
  readonly freshSeal: boolean;
  readonly suite: number;
  /** What that body says, or why it says nothing, where all of it was read. */
  readonly whole?: Result<readonly Opened[]>;
}

/**
 * Calls an agent: seals the body to it while it streams, and returns as soon as the answer starts, which is before
 * the body was read. Refuses with what the agent said, `attestation_invalid`, or `pool_lost`.
 */
export async function dial(call: Call, settings: Settings, surroundings: Surroundings): Promise<Result<Line>> {
  const { entry, facts, signal, startMs = limits.answerStartMs.value } = call;
  const address = addressOf(entry, settings);
  if (!address.ok) return address;
  const written = entry.description.lanes
    ? await writeOnLane(call, settings, surroundings)
    : await writeWithTicket(call, settings, surroundings);
  if (!written.ok) return written;
  const { headers, body, opener, freshSeal, suite } = written.value;
  const request = fetch(address.value, {
    method: 'POST',
    headers,
    body,
    redirect: 'manual',
    signal: signal ?? null,
    // Node's fetch wants it said that the answer may come before the body has gone; the Workers runtime knows.
    ...halfDuplex,
  });
  const answered = await awaitAnswer(request, startMs, surroundings);
  if (!answered.ok) return answered;
  const { value: response } = answered;
  const length = sealedLength(response);
  if (length === null) return no(await refusalOf(response, facts.agent));
  return ok({ response, length, opener, freshSeal, suite });
}

/** Where an agent takes short requests. */
export function addressOf({ description: { endpoint } }: RosterEntry, settings: Settings): Result<string> {
  if (settings.mode === 'production' && !endpoint.startsWith('https:')) {
    return no(refuse('pool_lost', undefined, 'the endpoint is not HTTPS'));
  }
  return ok(`${endpoint.endsWith('/') ? endpoint.slice(0, -1) : endpoint}/v1/short`);
}

/** Bytes of a sealed answer, if the agent said so; `null` when it is no sealed answer. */
export function sealedLength({ status, headers }: Response): number | undefined | null {
  return status === 200 && headers.get('content-type') === SEALED ? readLength(headers) : null;
}

/** Why the agent did not answer the call. */
export async function refusalOf(response: Response, agent: string): Promise<Refusal> {
  const refusal = await readPlainRefusal(response, agent);
  if (refusal.reason !== 'pool_busy') forgetLane(agent);
  return refusal;
}

const halfDuplex = { duplex: 'half' } as object;

interface Written extends Omit<Line, 'response' | 'length'> {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>;
}

/** With keys of its own, for agents that know no lanes. */
async function writeWithTicket(call: Call, settings: Settings, surroundings: Surroundings): Promise<Result<Written>> {
  const prepared = await prepareCall(call.entry, call.facts, settings, surroundings);
  if (!prepared.ok) return prepared;
  const { sealer, headers: own, ...rest } = prepared.value;
  const headers = { 'content-type': SEALED, ...own };
  const head = new TextEncoder().encode(JSON.stringify(call.head));
  if (call.body instanceof ReadableStream) return ok({ ...rest, headers, body: sealStream(head, call.body, sealer) });
  const first = await sealer.seal(head, false);
  return ok({ ...rest, headers, body: concat(first, ...(await sealPieces(call.body, sealer))) });
}

async function writeOnLane(call: Call, settings: Settings, surroundings: Surroundings): Promise<Result<Written>> {
  const entering = enterLane(call.entry, call.facts, call.head, settings, surroundings.now());
  const entered = entering instanceof Promise ? await entering : entering;
  if (!entered.ok) return entered;
  const { sealer, start, ...rest } = entered.value;
  if (call.body instanceof ReadableStream) {
    return ok({ ...rest, body: sealAfter(() => sealer.pack(start, false), call.body, sealer) });
  }
  const first = await sealer.pack(start, false);
  return ok({ ...rest, body: concat(first, ...(await sealPieces(call.body, sealer))) });
}
