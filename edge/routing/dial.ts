import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { ANSWER_START_MS } from '../../shared/pool/limits.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Opener } from '../../shared/seal/records.ts';
import { sealAfter, sealWhole } from '../../shared/seal/streams.ts';
import type { Runtime } from '../clock.ts';
import { readLength } from '../http/body-source.ts';
import type { Settings } from '../settings.ts';
import { awaitAnswer, readPlainRefusal, SEALED } from './call.ts';
import { endpointOf } from './endpoint.ts';
import { forgetSession, type SealedRequest, sealRequest } from './sealed-session.ts';
import type { TicketFacts } from './ticket.ts';

/** A unary request to one agent. */
export interface Call {
  readonly entry: RosterEntry;
  readonly facts: TicketFacts;
  /** Parameters of the task; the agent reads them before the body. */
  readonly head: unknown;
  /** A stream is sealed while it arrives; pieces are sealed at once and sent with their length. */
  readonly body: ReadableStream<Uint8Array> | readonly Uint8Array[];
  /** Aborts the call: the agent stops its work, the body stays as it is. */
  readonly signal: AbortSignal;
  /** Trace context of the call. */
  readonly traceparent?: string | undefined;
  /** Time until the answer starts, ms; `ANSWER_START_MS` by default. */
  readonly startMs?: number;
}

/** The start of an agent's answer. */
export interface SealedAnswer {
  /** Status 200 and a sealed body. */
  readonly response: Response;
  /** Bytes of that body, if the agent names them. */
  readonly length: number | undefined;
  readonly opener: Opener;
  /** Whether the HPKE set-up was made for this call. */
  readonly freshSeal: boolean;
  readonly suite: number;
}

/**
 * Calls an agent and returns when its answer starts, which may be before a streamed body has ended. Refuses with the
 * agent's own refusal, `attestation_invalid` or `pool_lost`.
 */
export async function dial(call: Call, settings: Settings, runtime: Runtime): Promise<Result<SealedAnswer>> {
  const { entry, facts, head, signal, traceparent, startMs = ANSWER_START_MS } = call;
  const endpoint = endpointOf(entry, settings);
  if (!endpoint.ok) return endpoint;
  const sealed = await sealRequest(entry, { facts, head }, settings, runtime.now());
  if (!sealed.ok) return sealed;
  const { headers, opener, freshSeal, suite } = sealed.value;
  const request = fetch(`${endpoint.value}/v1/short`, {
    method: 'POST',
    headers: { ...headers, ...(traceparent !== undefined && { traceparent }) },
    body: await sealBody(call.body, sealed.value),
    redirect: 'manual',
    signal,
    ...halfDuplex,
  });
  const answered = await awaitAnswer(request, startMs, runtime);
  if (!answered.ok) return answered;
  const { value: response } = answered;
  if (response.status !== 200 || response.headers.get('content-type') !== SEALED) {
    const refusal = await readPlainRefusal(response, facts.agent);
    if (refusal.reason !== 'pool_busy') forgetSession(facts.agent);
    return no(refusal);
  }
  return ok({ response, length: readLength(response.headers), opener, freshSeal, suite });
}

/** Node's fetch requires it for an answer that starts before the body has ended; the Workers runtime ignores it. */
const halfDuplex = { duplex: 'half' } as object;

function sealBody(body: Call['body'], { sealer, start }: SealedRequest) {
  const first = () => sealer.pack(start, false);
  return body instanceof ReadableStream ? sealAfter(first, body, sealer) : sealWhole(first, body, sealer);
}
