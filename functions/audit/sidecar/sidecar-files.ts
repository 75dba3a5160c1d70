// Finds the files with hidden values of some entries: one for each commit that hides any, and sometimes one
// of an abandoned commit.

import { readCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { toBase64Url } from '../../../shared/audit/commitment.ts';
import { digits, signedName } from '../log/log-names.ts';
import type { LogStore } from '../log/log-store.ts';

/**
 * Entries searched backwards for the beginning of a commit: a commit has at most COMMIT_ENTRIES_MAX and one
 * delivery.
 */
const SIDECAR_REACH_ENTRIES = 32_000;
/**
 * Sidecar files that begin within a thousand entries: one for each commit, and a few of commits that never
 * happened.
 */
const SIDECAR_FILES_MAX = 2_000;

export interface SidecarFile {
  readonly name: string;
  /** The entries `from` up to `size`. */
  readonly from: number;
  readonly size: number;
  /** The root at `size`, as it stands in names. */
  readonly root: string;
}

export interface SidecarPlace {
  readonly store: LogStore;
  readonly zone: string;
  readonly year: number;
}

/** Number of entries whose file names share leading digits and are listed together. */
const BLOCK = 1_000;
const NAME = /\/(\d{16})-(\d{16})-([\w-]+)$/;

/** The files with entries from `from` up to `to`, by where they begin; of those of the same entries, the one committed. */
export async function findSidecarFiles(place: SidecarPlace, from: number, to: number): Promise<SidecarFile[]> {
  const found: SidecarFile[] = [];
  const first = Math.floor(Math.max(0, from - SIDECAR_REACH_ENTRIES) / BLOCK);
  for (let block = Math.floor((to - 1) / BLOCK); block >= first; block -= 1) {
    const files = await listBlock(place, block);
    found.push(...files.filter((file) => file.from < to && file.size > from));
    // Commits follow each other: what begins before this one ends where it begins, if it was ever committed.
    if (files.some((file) => file.from <= from)) break;
  }
  const sorted = found.sort((a, b) => a.from - b.from || a.size - b.size);
  const alone = sorted.every((file, at) => at === 0 || (sorted[at - 1] as SidecarFile).size <= file.from);
  if (alone) return sorted;
  const committed = await Promise.all(sorted.map((file) => isCommitted(place, file)));
  return sorted.filter((_, at) => committed[at]);
}

async function listBlock({ store, zone, year }: SidecarPlace, block: number): Promise<SidecarFile[]> {
  const first = digits(block * BLOCK);
  const prefix = `${zone}/${year}/${first.slice(0, first.length - String(BLOCK - 1).length)}`;
  const names = await store.list('sidecar', prefix, SIDECAR_FILES_MAX);
  return names.flatMap((name): SidecarFile[] => {
    const [, from, size, root] = NAME.exec(name) ?? [];
    return root === undefined ? [] : [{ name, from: Number(from), size: Number(size), root }];
  });
}

/**
 * Each commit has a signed checkpoint. Its signature is not verified here, since disclosures prove
 * themselves.
 */
async function isCommitted({ store, zone, year }: SidecarPlace, { size, root }: SidecarFile): Promise<boolean> {
  const stored = await store.read('log', signedName(zone, year, size));
  const text = stored && new TextDecoder().decode(stored.bytes);
  const checkpoint = text === undefined ? undefined : readCheckpoint(text.slice(0, text.lastIndexOf('\n\n') + 1));
  return checkpoint !== undefined && toBase64Url(checkpoint.root) === root;
}
