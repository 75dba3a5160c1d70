// Version numbers of revisions, as other registries use them: from 1, in the order of registration. The log
// never loses an entry, so no number is reused.
import type { ModelState, RevisionRow } from './contract.ts';

export interface Version {
  readonly version: string;
  readonly row: RevisionRow;
}

export const versionsOf = ({ revisions }: Pick<ModelState, 'revisions'>): Version[] =>
  revisions.map((row, at) => ({ version: String(at + 1), row }));

/** Finds a version by number or digest. */
export const findVersion = (state: Pick<ModelState, 'revisions'>, text: string): Version | undefined =>
  versionsOf(state).find(({ version, row }) => version === text || row.revision === text);
