// Dependencies of erasure, holds and retention in one zone.
import type { EventDraft } from '../../../shared/audit/event.ts';
import type { Result } from '../../../shared/result.ts';
import type { SubjectIndex } from '../entries/subject-rows.ts';
import type { LogStore } from '../log/log-store.ts';
import type { SidecarKeys } from '../sidecar/sidecar-keys.ts';

export interface EraseContext {
  readonly zone: string;
  readonly store: LogStore;
  readonly keys: SidecarKeys;
  readonly index: SubjectIndex;
  /** Withdraws exports of the tenant that may disclose what was destroyed. */
  withdrawExports(tenant: string): Promise<void>;
  /** Into the log of the zone: durable when it says yes, and perhaps when it says no. */
  report(draft: EventDraft): Promise<Result<unknown>>;
  /** Milliseconds since 1970. */
  now(): number;
  /** Reports a row that cannot be processed; processing of the others continues. */
  failed(error: unknown): void;
}

/** The requester, as a commitment, and its request. */
export interface Officer {
  readonly by?: string | undefined;
  readonly request?: string | undefined;
}

export const officerOf = ({ by, request }: Officer) => ({
  ...(by !== undefined && { subject: by }),
  ...(request !== undefined && { request }),
});
