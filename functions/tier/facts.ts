// Facts that the decisions about files rest on, from revisions and the blobs of the store. Pure.
import type { ModelFile } from '../../shared/registry/model-files.ts';
import type { Registry } from '../../shared/registry/registry.ts';
import type { CanaryShare, Stage } from '../../shared/registry/stage.ts';
import type { Need } from '../../shared/registry/tiers.ts';
import type { BlobFacts } from '../store/blobs.ts';
import type { StoredBlob } from './decide.ts';

/** A revision with files in the store. */
export interface RevisionFiles {
  readonly model: string;
  readonly revision: string;
  readonly stage: Stage;
  readonly share?: CanaryShare | undefined;
  readonly aliases: readonly string[];
  readonly needs: readonly Need[];
  /** Last use, ms since 1970: a request for the files, traffic, a move of the revision. */
  readonly used: number;
  /** Requests for the files in 30 days. */
  readonly uses: number;
  readonly files: readonly ModelFile[];
}

export interface TierFacts {
  readonly revisions: readonly RevisionFiles[];
  /** Stored files of the revisions, by digest. */
  readonly blobs: ReadonlyMap<string, StoredBlob>;
}

/** Returns the needs of a revision. A legal hold keeps every revision: any may have answered its subject. */
export function needsOf({ revisions, aliases }: Registry, revision: string, isUnderLegalHold: boolean): Need[] {
  const stage = revisions[revision]?.standing.stage;
  const named = Object.values(aliases);
  return [
    ...(named.some((alias) => alias.revision === revision) ? (['alias'] as const) : []),
    ...(named.some(({ before }) => before === revision) && stage !== 'retired' ? (['rollback'] as const) : []),
    ...(stage === 'grey' || stage === 'canary' ? (['trial'] as const) : []),
    ...(isUnderLegalHold ? (['hold'] as const) : []),
  ];
}

/** Joins revisions and blobs. A file of several revisions has the needs and uses of all. */
export function joinFacts(revisions: readonly RevisionFiles[], found: readonly BlobFacts[]): TierFacts {
  const owners = new Map<string, RevisionFiles[]>();
  for (const revision of revisions) {
    for (const digest of new Set(revision.files.map((file) => file.digest))) {
      const known = owners.get(digest);
      if (known) known.push(revision);
      else owners.set(digest, [revision]);
    }
  }
  const blobs = new Map<string, StoredBlob>();
  for (const facts of found) {
    const owning = owners.get(facts.name);
    if (owning && !facts.copy) blobs.set(facts.name, blobOf(facts, owning));
  }
  return { revisions, blobs };
}

function blobOf({ name: digest, bytes, placed }: BlobFacts, owners: readonly RevisionFiles[]): StoredBlob {
  const { tier, since, returning } = placed ?? { tier: 'hot', since: 0 };
  const lastRead = Math.max(...owners.map(({ used }) => used));
  return {
    ...{ digest, bytes, tier, since, lastRead },
    reads: owners.reduce((sum, { uses }) => sum + uses, 0),
    needs: [...new Set(owners.flatMap(({ needs }) => needs))],
    // A file in archive is read by no request: a later use is a request for it.
    ...(tier === 'archive' && lastRead > since && { wanted: true }),
    ...(returning && { moving: returning }),
  };
}
