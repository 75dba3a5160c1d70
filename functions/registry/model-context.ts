import { refuse } from '../../shared/refusal.ts';
import type { ReleaseMap } from '../../shared/registry/release.ts';
import type { SignerKey, SigningKey } from '../../shared/registry/signature-key.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Reporter } from '../audit/report/report.ts';
import type { Settings } from '../settings.ts';
import type { PlainBlobs } from '../store/blobs.ts';
import type { Rows } from '../store/rows.ts';

export interface ModelContext {
  readonly rows: Rows;
  /** Files of revisions; see `model-files.ts`. */
  readonly blobs: Pick<PlainBlobs, 'find' | 'digest' | 'copy' | 'discard' | 'list' | 'address' | 'setTier'>;
  readonly signers: readonly SignerKey[];
  /** Signing key of the functions, whose name is then among `signers`; absent where they have none. */
  readonly ownKey?: SigningKey | undefined;
  /** Zone whose audit log receives the entries. */
  readonly zone: string;
  /** Reports whether a legal hold stands in a zone; absent without audit logs. */
  readonly isUnderLegalHold?: (() => Promise<boolean>) | undefined;
  readonly audit: Pick<Reporter, 'report'> | undefined;
  /** Receiver of release maps; absent where none is configured. */
  readonly edge: ReleaseEdge | undefined;
  readonly settings: Pick<Settings, 'EDGE_KEYS' | 'ISSUERS' | 'ATTESTATION'>;
  /** Share of requests that grey revisions get a copy of. */
  readonly mirrorShare?: number | undefined;
  log(line: ModelLogLine): void;
  /** Milliseconds since 1970. */
  now(): number;
}

/** A log line: names and numbers only. */
export interface ModelLogLine {
  readonly what:
    | 'release untold'
    | 'live unjudged'
    | 'live unreadable'
    | 'not withdrawn'
    | 'model upload discarded'
    | 'model upload unhashed'
    | 'tier moved'
    | 'tier unmoved';
  readonly detail: string;
}

export const requireModels = (context: ModelContext | undefined): Result<ModelContext> =>
  context ? ok(context) : no(refuse('models_closed', undefined, 'no MODEL_SIGNERS'));
/** Client of the edge for release maps. */
export interface ReleaseEdge {
  publish(map: ReleaseMap): Promise<void>;
}
