import { inject } from 'vitest';
import { type Shared, shared } from './running.ts';

/** Joins the shared stack (shared.ts). A file that kills, fills or empties something runs its own. */
export async function join(): Promise<Shared> {
  const answer = await fetch(inject('sharedStack'));
  if (!answer.ok) throw new Error(`the shared stack did not start: ${await answer.text()}`);
  return shared((await answer.json()) as Pick<Shared, 'stack' | 'state'>);
}
