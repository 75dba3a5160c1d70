import type { IncomingMessage } from 'node:http';
import { type Reason, type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { ENCAPSULATED_CHARACTERS } from '../../../../shared/seal/limits.ts';
import { sha256 } from '../identity/keys.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { AgentContext } from './agent-context.ts';
import type { Facts, Ticket } from './ticket.ts';

const base64url = /^[A-Za-z0-9_-]+$/;

/** A request that was let in: nothing of its body was read yet. */
export interface Admitted {
  readonly ticket: Ticket;
  readonly model: ServedModel;
  readonly answerKey: Uint8Array;
  readonly requestKey: Uint8Array;
}

/** Conditions of one kind of work beyond ticket and keys: capacity for it, and a model that does it. */
export interface Doorway {
  /** Takes what the work needs of a bounded resource. Refuses with `pool_busy`. */
  enter(facts: Facts): Result<unknown>;
  serves?(model: ServedModel): boolean;
}

/** Checks that are refused in plain HTTP: the ticket, its agent, and free capacity. */
export async function admit(
  context: Pick<AgentContext, 'now' | 'readTicket' | 'model' | 'replays' | 'keys'>,
  headers: IncomingMessage['headers'],
  { enter, serves = () => true }: Doorway,
): Promise<Result<Admitted>> {
  const token = headers['auricle-ticket'];
  const encText = headers['auricle-enc'];
  if (typeof token !== 'string' || typeof encText !== 'string' || !base64url.test(encText)) {
    return no(refuse('ticket_invalid', undefined, 'headers'));
  }
  if (encText.length > ENCAPSULATED_CHARACTERS) return no(refuse('ticket_invalid', undefined, 'enc'));
  const now = context.now();
  const read = await context.readTicket(token, now);
  if (!read.ok) return read;
  const ticket = read.value;
  const enc = new Uint8Array(Buffer.from(encText, 'base64url'));
  if (sha256(enc) !== ticket.enc) return no(refuse('ticket_invalid', undefined, 'enc'));
  const model = context.model(ticket.model, ticket.revision);
  if (!model || !serves(model)) return no(refuse('misdirected', undefined, 'model'));
  const entered = enter(ticket);
  if (!entered.ok) return entered;
  const fresh = context.replays.admit(ticket, now);
  if (!fresh.ok) return fresh;
  const setup = await context.keys.setup({ enc, suite: ticket.suite, attestationDigest: ticket.att, now });
  if (!setup.ok) return setup;
  const { request, answer } = await setup.value.keysFor(token);
  return ok({ ticket, model, requestKey: request, answerKey: answer });
}

/** Statuses of what is refused before the answer starts; every other reason is a bug there. */
const statuses: Partial<Record<Reason, number>> = {
  ticket_invalid: 403,
  ticket_replayed: 403,
  misdirected: 421,
  seal_broken: 400,
  pool_busy: 503,
};

/** The plain HTTP answer of a request that was not let in. */
export function plainRefusal({ reason, retryAfter }: Refusal): { readonly status: number; readonly body: string } {
  return { status: statuses[reason] ?? 500, body: JSON.stringify({ reason, retryAfter }) };
}
