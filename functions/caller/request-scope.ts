// Bounds of the HTTP request of the edge that the current code serves. Storage clients read them from the asynchronous
// context (store/storage-call.ts), so that no step of an upload or a project has to pass them on. Timers and events have
// no scope and no bounds.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { HttpResponseInit } from '@azure/functions';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { answerNo } from '../http/answer.ts';

interface RequestScope {
  /** Milliseconds since 1970, by the clock of the edge; absent in calls of an edge that sends none, and of reads. */
  readonly deadline: number | undefined;
  /** Milliseconds since 1970. */
  now(): number;
  /** A durable write has begun: the request is carried out from then on. */
  written: boolean;
}

const scopes = new AsyncLocalStorage<RequestScope>();

/** Refuses a call whose deadline has passed. The text names how long ago, so that a skewed clock is visible. */
export function refuseOverdue(deadline: number | undefined, now: number): Refusal | undefined {
  if (deadline === undefined || now <= deadline) return undefined;
  return refuse('deadline_passed', { ago: Math.round((now - deadline) / 100) / 10 });
}

/** Reads the deadline of a call of the edge. */
export function deadlineIn(header: string | null): number | undefined {
  return header !== null && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

/** Leaves the current request before its first durable write. */
class Overdue extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}

/** Storage did not answer within its bound, or cannot be reached. */
export class StorageSilent extends Error {}

/** Serves a call with its bounds. Storage that does not answer becomes a refusal that says whether anything was done. */
export function serveInScope(
  bounds: Pick<RequestScope, 'deadline' | 'now'>,
  serve: () => Promise<HttpResponseInit>,
): Promise<HttpResponseInit> {
  const scope: RequestScope = { ...bounds, written: false };
  return scopes.run(scope, async () => {
    const overdue = refuseOverdue(scope.deadline, scope.now());
    if (overdue) return answerNo(overdue);
    try {
      return await serve();
    } catch (error) {
      if (error instanceof Overdue) return answerNo(error.refusal);
      if (!(error instanceof StorageSilent)) throw error;
      // After the first write the caller must check the state: storage may still carry out the write.
      return answerNo(refuse(scope.written ? 'uploads_unavailable' : 'storage_unavailable'));
    }
  });
}

/** Reports whether the current code serves a request of the edge. */
export const isInScope = (): boolean => scopes.getStore() !== undefined;

/** Called right before a durable write: drops the request if this is its first one and its deadline has passed. */
export function beginWrite(): void {
  const scope = scopes.getStore();
  if (!scope || scope.written) return;
  dropOverdue();
  scope.written = true;
}

/** Drops the request if its deadline has passed, whatever was written: nothing that its caller would see. */
export function dropOverdue(): void {
  const scope = scopes.getStore();
  const overdue = scope && refuseOverdue(scope.deadline, scope.now());
  if (overdue) throw new Overdue(overdue);
}
