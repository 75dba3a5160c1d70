// Audit events of one request: its attempt, what happened on the way, and its end.
import type { AuditEvent } from '../../shared/audit/event.ts';
import { type AnyDraft, type DraftOf, mintDraft } from './mint.ts';

/** Members of an attempt; its end repeats them. */
export type AttemptFields = Omit<DraftOf<'inference.attempt'>, 'type'>;

/** A request that has begun and whose attempt is not reported yet. */
export interface Attempt {
  readonly fields: AttemptFields;
  /** Epoch ms. */
  readonly at: number;
}

/** An event without its id. */
export interface TimedDraft<Draft extends AnyDraft = AnyDraft> {
  readonly draft: Draft;
  /** Epoch ms. */
  readonly at: number;
}

/** Events of a request after its attempt. */
export interface RequestRecord {
  readonly notes: readonly TimedDraft[];
  readonly end: TimedDraft<DraftOf<'inference.complete'>>;
}

export const mintAttempt = ({ fields, at }: Attempt): AuditEvent =>
  mintDraft({ type: 'inference.attempt', ...fields }, at);

/** Returns the events of a request in order; `attempt` is present while no report had it. */
export function mintRecord(attempt: Attempt | undefined, { notes, end }: RequestRecord): AuditEvent[] {
  const rest = [...notes, end].map(({ draft, at }) => mintDraft(draft, at));
  return attempt ? [mintAttempt(attempt), ...rest] : rest;
}
