// Selects the stored files that a finished document retains. Pure.
import { editionOf, type OutcomeName, pieceOf, readOutcomeBlob } from '../../shared/jobs/paths.ts';
import type { UploadRecord } from './record.ts';

/**
 * Returns whether a blob is retained: the plan, current segments with their sound, and the merged sound, all
 * of which an edit needs. Files of a later edition belong to an edit in progress.
 */
export function isRetained({ state, transcript }: UploadRecord, blob: string): boolean {
  const name = readOutcomeBlob(blob)?.name;
  if (name === undefined || state.status === 'cancelled' || transcript === 'deleted') return false;
  if (name === 'plan') return true;
  const [edition, now] = [editionOf(name), state.edition ?? 0];
  return edition > now || edition === editionNow(name, state);
}

/** The edition in which a name holds what counts; `undefined` when none does. */
function editionNow(name: OutcomeName, { status, edition = 0, edits = {} }: UploadRecord['state']): number | undefined {
  const piece = pieceOf(name);
  if (piece !== undefined) return edits[piece] ?? 0;
  return name.startsWith('transcript') && status === 'done' ? edition : undefined;
}
