import { describeBug } from '../../shared/bug.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { isStorageFull, refuseFull } from '../../shared/storage-full.ts';
import { logFull } from '../ledger/log-full.ts';

/** Logs a bug under the id that the response carries. */
export function logBug(request: string, error: unknown): void {
  console.error(JSON.stringify({ event: 'bug', request, ...describeBug(error) }));
}

/** Returns the refusal for a thrown error: a bug, which is logged, or a full disk of a Durable Object. */
export function refuseThrown(request: string, error: unknown): Refusal {
  if (!isStorageFull(error)) {
    logBug(request, error);
    return refuse('internal');
  }
  logFull(request);
  return refuseFull('edge');
}
