import type { AuditEvent } from '../../shared/audit/event.ts';
import type { Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { AdmissionRequest } from './allowance.ts';
import type { Quota } from './quota.ts';
import type { ReserveLease } from './reserve.ts';
import type { ReportStep } from './reserves.ts';

/**
 * Leases a slot and writes the attempt. Repeating it with the same `ask.id` changes nothing. A refusal leases and writes
 * nothing; the caller records it.
 */
export interface TakeStep {
  readonly kind: 'take';
  readonly ask: AdmissionRequest;
  readonly mode: Claims['audit'];
  readonly events: readonly AuditEvent[];
}

/** One step of a call to a Gate. */
export type GateStep =
  | TakeStep
  /** Renews the lease of running work. */
  | { kind: 'renew'; id: string; events: readonly [] }
  /** Releases the lease, books the audio and writes the outcome. */
  | { kind: 'settle'; id: string; mode: Claims['audit']; audioSeconds: number; events: readonly AuditEvent[] }
  /** Books usage of work without a lease, once for each `id`. Durable when the answer leaves. */
  | { kind: 'book'; id: string; mode: 'strict'; audioSeconds: number; events: readonly AuditEvent[] }
  /** Writes events without a lease; those of a strict step are durable when the answer leaves. */
  | { kind: 'record'; mode?: 'strict'; events: readonly AuditEvent[] }
  /** Reports usage of an isolate's reserve; the answer is its new reserve. */
  | ReportStep;

/** Only a `take` is refused and only a `report` gets a reserve; both carry the remaining quota. */
export type GateAnswer = Result<ReserveLease> & { readonly quota?: Quota };
