import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { ANSWER_START_MS } from '../../shared/pool/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Opener, Sealer } from '../../shared/seal/records.ts';
import type { Runtime } from '../clock.ts';
import type { Settings } from '../settings.ts';
import { awaitAnswer, prepareCall, readPlainRefusal } from './call.ts';
import type { TicketFacts } from './ticket.ts';

export interface StreamCall {
  readonly entry: RosterEntry;
  readonly facts: TicketFacts;
  /** Trace context of the call. */
  readonly traceparent?: string | undefined;
}

/**
 * An open socket to an agent, and the keys of its records. Nothing has been sent on it, and it has no
 * listener yet.
 */
export interface StreamCallAnswer {
  readonly socket: RuntimeSocket;
  readonly sealer: Sealer;
  readonly opener: Opener;
  readonly freshSeal: boolean;
  readonly suite: number;
}

/**
 * Opens a WebSocket to an agent for a live stream. Refuses with the agent's refusal, `attestation_invalid`, or
 * `pool_lost`.
 */
export async function dialStream(
  { entry, facts, traceparent }: StreamCall,
  settings: Settings,
  runtime: Runtime,
): Promise<Result<StreamCallAnswer>> {
  const prepared = await prepareCall(entry, facts, settings, runtime);
  if (!prepared.ok) return prepared;
  const { endpoint, headers, ...keys } = prepared.value;
  const trace = traceparent !== undefined && { traceparent };
  const upgrade = { upgrade: 'websocket', ...headers, ...trace };
  const request = fetch(`${endpoint}/v1/stream`, { headers: upgrade, redirect: 'manual' });
  const answered = await awaitAnswer(request, ANSWER_START_MS, runtime);
  if (!answered.ok) {
    // An agent that answers after the abort finds its socket closed.
    request.then(({ webSocket }) => hangUp(webSocket)).catch(() => {});
    return answered;
  }
  const { value: response } = answered;
  const { webSocket: socket } = response;
  if (socket) return ok({ socket, ...keys });
  const refusal = await readPlainRefusal(response, facts.agent);
  return no(response.ok ? refuse('pool_lost', undefined, 'the agent did not upgrade') : refusal);
}

function hangUp(socket: RuntimeSocket | null | undefined): void {
  if (!socket) return;
  socket.accept();
  socket.close(1000, 'too late');
}
