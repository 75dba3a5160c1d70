// Audit events of one request: its attempt, what happened on the way, and its end.
import type { AuditEvent } from '../../shared/audit/event.ts';
import { type AnyDraft, createDraft, type DraftOf } from './create-event.ts';

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

export const createAttemptEvent = ({ fields, at }: Attempt): AuditEvent =>
  createDraft({ type: 'inference.attempt', ...fields }, at);

/** Returns the events of a request in order; `attempt` is present while no report had it. */
export function createRecordEvents(attempt: Attempt | undefined, { notes, end }: RequestRecord): AuditEvent[] {
  const rest = [...notes, end].map(({ draft, at }) => createDraft(draft, at));
  return attempt ? [createAttemptEvent(attempt), ...rest] : rest;
}
