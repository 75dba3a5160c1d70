import { describeBug } from '../shared/bug.ts';

/** Notes a bug under the id that the caller got, too. */
export function logBug(request: string, error: unknown): void {
  console.error(JSON.stringify({ event: 'bug', request, ...describeBug(error) }));
}
