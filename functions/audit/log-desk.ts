// What everything around the logs needs: storage, keys, a clock, and where to say what happened.
import { fromBase64 } from '../../shared/audit/base64.ts';
import { openSigningKey, type Signer } from '../../shared/audit/note.ts';
import type { Settings } from '../settings.ts';
import { type BlobLogStore, openBlobLogStore } from './blob-log-store.ts';
import { openHide } from './hide.ts';
import type { Hide } from './intake.ts';
import type { Leases, LogStore } from './log-store.ts';

export interface LogDesk {
  readonly store: LogStore & Leases;
  readonly zones: readonly string[];
  /** What the names of logs begin with. */
  readonly base: string;
  readonly settings: Pick<Settings, 'EDGE_KEYS'>;
  signer(name: string): Signer;
  hide(zone: string): Hide;
  /** Milliseconds since 1970. */
  now(): number;
  log(line: LogLine): void;
}

/** Names and numbers only. */
export interface LogLine {
  readonly what: 'committed' | 'held' | 'failed';
  readonly zone: string;
  readonly entries?: number;
  readonly held?: number;
  readonly detail?: string;
}

/** `undefined` where no logs are kept: without keys nothing can be signed or hidden. */
export async function openLogDesk(
  settings: Settings,
): Promise<(LogDesk & { readonly store: BlobLogStore }) | undefined> {
  const { AUDIT_KEY, AUDIT_SIDECAR_KEY, AUDIT_ORIGIN = 'auricle', STORAGE_CONNECTION, ZONES } = settings;
  const seed = AUDIT_KEY === undefined ? undefined : fromBase64(AUDIT_KEY);
  if (!seed || AUDIT_SIDECAR_KEY === undefined) return undefined;
  const key = await openSigningKey(seed);
  const store = openBlobLogStore(STORAGE_CONNECTION);
  const hides = new Map(ZONES.map((zone) => [zone, openHide(store, zone, AUDIT_SIDECAR_KEY)]));
  return {
    store,
    zones: ZONES,
    base: AUDIT_ORIGIN,
    settings,
    signer: (name) => key.signer(name),
    hide: (zone) => hides.get(zone) ?? openHide(store, zone, AUDIT_SIDECAR_KEY),
    now: () => Date.now(),
    log: (line) => console.log(JSON.stringify(line)),
  };
}
