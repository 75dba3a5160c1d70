import type { Result } from '../../../../shared/result.ts';
import type { SessionKeys } from '../../../../shared/seal/sealed-session.ts';
import type { SessionTicket } from './ticket.ts';
/** A sealed session with an edge (PROTOCOL.md §7) whose ticket was verified. */
export interface SealedSession {
  readonly ticket: SessionTicket;
  /** Prefix of its requests in the replay cache; unique. */
  readonly name: string;
  readonly keys: SessionKeys;
}

export type ReadSession = (token: string, now: number) => Promise<Result<SealedSession>>;
