import { describeBug } from '../shared/bug.ts';
import { type Refusal, refuse } from '../shared/refusal.ts';
import { isStorageFull, refuseFull } from '../shared/storage-full.ts';

/** Notes a bug under the id that the caller got, too. */
export function logBug(request: string, error: unknown): void {
  console.error(JSON.stringify({ event: 'bug', request, ...describeBug(error) }));
}

/** Refusal for what was thrown: a bug, which is noted, or a full disk below a Durable Object. */
export function refuseThrown(request: string, error: unknown): Refusal {
  if (!isStorageFull(error)) {
    logBug(request, error);
    return refuse('internal');
  }
  logFull(request);
  return refuseFull('edge');
}

/** Alarm on this line: nothing is recorded, so nothing is served. */
export const logFull = (request: string): void => console.error(JSON.stringify({ event: 'storage_full', request }));
