// What erasing, holding and retention work with, in one zone.
import type { EventDraft } from '../../../shared/audit/event.ts';
import type { Result } from '../../../shared/result.ts';
import type { LogStore } from '../log/log-store.ts';
import type { SidecarKeys } from '../sidecar/sidecar-keys.ts';

/** What finds records by their subject's number, and must forget it. */
export interface SubjectIndex {
  /** Of how many records it knows. */
  count(tenant: string, sid: string): Promise<number>;
  forget(tenant: string, sid: string): Promise<void>;
}

export interface EraseDesk {
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
  /** Told of a row that nobody can go on with; the others are not kept waiting by it. */
  failed(error: unknown): void;
}

/** Who asks, as a commitment, and with which request. */
export interface Asker {
  readonly by?: string | undefined;
  readonly request?: string | undefined;
}

export const askerOf = ({ by, request }: Asker) => ({
  ...(by !== undefined && { subject: by }),
  ...(request !== undefined && { request }),
});
