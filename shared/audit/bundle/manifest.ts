// Manifest of an export's bundle. `manifest.json` lists every other file with its digest; `manifest.note` is
// a signed note over the digest of `manifest.json`, by the key of the log under the name `<origin>/export`.
import { canonicalJson } from '../canonical-json.ts';

export const MANIFEST = 'manifest.json';
export const MANIFEST_NOTE = 'manifest.note';
export const POLICY = 'policy.txt';

export interface FileDigest {
  readonly path: string;
  /** In hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Files of one part; large bundles have several, each small enough to be held in memory. */
export interface BundlePart {
  readonly entries: string;
  /** Hashes between the entries, one after the other. */
  readonly proofs: string;
  /** Present where the profile discloses anything. */
  readonly disclosures?: string;
  /** Paths by format. */
  readonly derived: Readonly<Record<string, string>>;
}

/** A leaf of another log of the same region: the entry as it stands there, and that it does (`.tlog-proof`). */
export interface LinkFiles {
  readonly entry: string;
  readonly receipt: string;
}

export interface Manifest {
  readonly v: 1;
  readonly export_id: string;
  readonly log: { readonly origin: string; readonly zone: string; readonly year: number };
  readonly tenant: string;
  readonly range: {
    /** First and last number of the tenant; every one between them is in the bundle. Of none: one less than the first. */
    readonly tseq: readonly [number, number];
    /** Places of the first and the last entry. */
    readonly index: readonly [number, number];
  };
  /** In ascending size; the last one covers the bundle. */
  readonly checkpoints: readonly { readonly path: string; readonly size: number }[];
  readonly policy: typeof POLICY;
  /** The query. Disclosures and derived files cover this part of the range, entries all of it. */
  readonly query: {
    readonly year?: number | undefined;
    /** Times in the log, ms since 1970: not before, and before. */
    readonly from?: number | undefined;
    readonly to?: number | undefined;
    readonly tseq_from?: number | undefined;
    readonly tseq_to?: number | undefined;
  };
  /** `full`, `auditor-min` (nothing), or `fields:a,b`. */
  readonly redaction: string;
  readonly counts: {
    readonly entries: number;
    /** Entries with disclosures, and entries whose hidden values are destroyed. */
    readonly disclosed: number;
    readonly erased: number;
  };
  readonly parts: readonly BundlePart[];
  readonly files: readonly FileDigest[];
  readonly purpose: string;
  /** Id of the request that asked for it. */
  readonly requested_by: string;
  readonly created: string;
  /**
   * The leaf of the export's creation: the last number of the tenant in it. Of an ended log it is in the
   * later log `log`, and among `links.after`.
   */
  readonly anchor: {
    readonly index: number;
    readonly id: string;
    readonly type: 'export.create';
    readonly log?: string;
  };
  /** Links to the logs before and after this one: `check-links.ts`. */
  readonly links?: { readonly before: readonly LinkFiles[]; readonly after: readonly LinkFiles[] };
  readonly tool: string;
  readonly schema: Readonly<Record<string, string | number>>;
}

export const encodeManifest = (manifest: Manifest): Uint8Array<ArrayBuffer> =>
  new TextEncoder().encode(`${canonicalJson(manifest)}\n`);

/** Name of the key that signs manifests of a log: the log's own, under another name, so that neither passes for the other. */
export const exportName = (origin: string): string => `${origin}/export`;

export const manifestNoteText = (origin: string, digest: string): string => `${exportName(origin)}\n${digest}\n`;

/** Names of the files of a part: the first has none, so that a small bundle is as simple as it can be. */
export const numbered = (name: string, part: number): string => {
  const dot = name.lastIndexOf('.');
  return part === 0 ? name : `${name.slice(0, dot)}-${part + 1}${name.slice(dot)}`;
};
