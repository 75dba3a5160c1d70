// Dependencies of the model endpoints.

import type { SignerKey, SigningKey } from '../../shared/model/signature/key.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Reporter } from '../audit/report/report.ts';
import type { Settings } from '../settings.ts';
import type { Rows } from '../store/rows.ts';
import { openTable } from '../store/table-rows.ts';
import { openReleaseEdge, type ReleaseEdge } from './publish-release.ts';
import { openOwnKey, ownSigner } from './sign-as-functions.ts';

export interface ModelDesk {
  readonly rows: Rows;
  readonly signers: readonly SignerKey[];
  /** Signing key of the functions, whose name is then among `signers`; absent where they have none. */
  readonly ownKey?: SigningKey | undefined;
  /** Zone whose audit log receives the entries. */
  readonly zone: string;
  readonly audit: Pick<Reporter, 'report'> | undefined;
  /** Receiver of release maps; absent where none is configured. */
  readonly edge: ReleaseEdge | undefined;
  readonly settings: Pick<Settings, 'EDGE_KEYS' | 'ISSUERS' | 'ATTESTATION'>;
  /** Share of requests that grey revisions get a copy of. */
  readonly mirrorShare?: number | undefined;
  log(line: ModelLine): void;
  /** Milliseconds since 1970. */
  now(): number;
}

/** A log line: names and numbers only. */
export interface ModelLine {
  readonly what: 'release untold' | 'live unjudged' | 'live unreadable' | 'not withdrawn';
  readonly detail: string;
}

const MODEL_TABLE = 'models';

/** Opens the context; `undefined` without MODEL_SIGNERS, since no revision could be registered then. */
export function openModelDesk(settings: Settings, audit: ModelDesk['audit']): ModelDesk | undefined {
  const { MODEL_SIGNERS, STORAGE_CONNECTION, ZONES } = settings;
  if (!MODEL_SIGNERS) return undefined;
  const ownKey = openOwnKey(settings);
  return {
    rows: openTable(STORAGE_CONNECTION, MODEL_TABLE),
    signers: ownKey ? [...MODEL_SIGNERS, ownSigner(ownKey)] : MODEL_SIGNERS,
    ownKey,
    zone: ZONES[0] as string,
    audit,
    edge: openReleaseEdge(settings),
    mirrorShare: settings.MIRROR_SHARE,
    settings,
    log: (line) => console.error(JSON.stringify(line)),
    now: () => Date.now(),
  };
}

export const needDesk = (desk: ModelDesk | undefined): Result<ModelDesk> =>
  desk ? ok(desk) : no(refuse('models_closed', undefined, 'no MODEL_SIGNERS'));
