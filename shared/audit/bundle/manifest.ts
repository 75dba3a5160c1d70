// Manifest of an export's bundle. `manifest.json` lists every other file with its digest; `manifest.note` is
// a signed note over the digest of `manifest.json`, by the key of the log under the name `<origin>/export`.
import { canonicalJson } from '../canonical-json.ts';

export const MANIFEST = 'manifest.json';
export const MANIFEST_NOTE = 'manifest.note';
export const POLICY = 'policy.txt';

export interface FileDigest {
  readonly path: string;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Files of one part. Large bundles have several parts, each small enough to be buffered. */
export interface BundlePart {
  readonly entries: string;
  /** Concatenated hashes between the entries. */
  readonly proofs: string;
  /** Absent when the profile discloses nothing. */
  readonly disclosures?: string;
  /** Paths by format. */
  readonly derived: Readonly<Record<string, string>>;
}

/** A leaf of another log of the same region: the entry, and its receipt (`.tlog-proof`). */
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
    /**
     * First and last number of the tenant; the bundle has every one between them. Without entries the last is
     * one less than the first.
     */
    readonly tseq: readonly [number, number];
    /** Indexes of the first and the last entry. */
    readonly index: readonly [number, number];
  };
  /** Ascending by size; the last one covers the bundle. */
  readonly checkpoints: readonly { readonly path: string; readonly size: number }[];
  readonly policy: typeof POLICY;
  /** The query. Disclosures and derived files cover this part of the range, entries all of it. */
  readonly query: {
    readonly year?: number | undefined;
    /** Log times, epoch ms: inclusive start, exclusive end. */
    readonly from?: number | undefined;
    readonly to?: number | undefined;
    readonly tseq_from?: number | undefined;
    readonly tseq_to?: number | undefined;
  };
  /** `full`, `auditor-min` (nothing), or `fields:a,b`. */
  readonly redaction: string;
  readonly counts: {
    readonly entries: number;
    /** Entries with disclosures, and entries with erased values. */
    readonly disclosed: number;
    readonly erased: number;
  };
  readonly parts: readonly BundlePart[];
  readonly files: readonly FileDigest[];
  readonly purpose: string;
  /** Id of the export request. */
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

/**
 * Returns the name of the key that signs a log's manifests: the log's own key under another name, so that
 * neither signature passes for the other.
 */
export const exportName = (origin: string): string => `${origin}/export`;

export const manifestNoteText = (origin: string, digest: string): string => `${exportName(origin)}\n${digest}\n`;

/** Returns the name of a part's file. The first part has no number, so that small bundles stay simple. */
export const numbered = (name: string, part: number): string => {
  const dot = name.lastIndexOf('.');
  return part === 0 ? name : `${name.slice(0, dot)}-${part + 1}${name.slice(dot)}`;
};
