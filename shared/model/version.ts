// Revisions as other registries number them: versions from 1, in the order in which they were registered. Nothing is ever
// taken out of the log, so no number becomes another revision's.
import type { ModelState, RevisionRow } from './contract.ts';

export interface Version {
  readonly version: string;
  readonly row: RevisionRow;
}

export const versionsOf = ({ revisions }: Pick<ModelState, 'revisions'>): Version[] =>
  revisions.map((row, at) => ({ version: String(at + 1), row }));

/** By its number, or by its digest. */
export const findVersion = (state: Pick<ModelState, 'revisions'>, text: string): Version | undefined =>
  versionsOf(state).find(({ version, row }) => version === text || row.revision === text);
