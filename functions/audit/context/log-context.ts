// Dependencies of the audit logs: storage, keys, clock and log lines.
import type { Settings } from '../../settings.ts';
import { storageAccountOf } from '../../store/account.ts';
import { after } from '../log/after.ts';
import { type BlobLogStore, openBlobLogStore } from '../log/blob-log-store.ts';
import { type LogKeys, openLogKeys, openVaultKey } from '../log/log-keys.ts';
import type { Leases, LogStore } from '../log/log-store.ts';
import { type NotifyingStore, noticing } from '../log/notifying-store.ts';
import { type Hide, openHide, type RetentionOf } from '../sidecar/hide.ts';
import { wrapWith } from '../sidecar/sidecar-box.ts';
import { SidecarKeys } from '../sidecar/sidecar-keys.ts';

/** Foreign error text in one log line. */
const LOGGED_REASON_CHARACTERS = 300;

export interface LogContext extends LogKeys {
  readonly store: LogStore & Leases;
  readonly zones: readonly string[];
  /** Prefix of the names of logs. */
  readonly base: string;
  readonly settings: Pick<Settings, 'EDGE_KEYS'> & Partial<Pick<Settings, 'MODE'>>;
  hide(zone: string): Hide;
  /** The keys of what the leaves of a zone hide. */
  keys(zone: string): SidecarKeys;
  /** Milliseconds since 1970. */
  now(): number;
  log(line: LogLine): void;
}

/** Names and numbers only. */
export interface LogLine {
  readonly what:
    | 'committed'
    | 'erased'
    | 'held'
    | 'gap'
    | 'silent'
    | 'failed'
    | 'unsigned'
    | 'unwitnessed'
    | 'diverged'
    | 'doubted'
    | 'unreadable'
    | 'full'
    | 'beaten'
    | 'clock';
  readonly zone: string;
  readonly entries?: number;
  readonly held?: number;
  /** Entries that say that events of a producer are missing, or may come late. */
  readonly gaps?: number;
  /** Unreadable deliveries that were set aside in the intake. */
  readonly unreadable?: number;
  /** Producers that have begun, have not ended, and say nothing. */
  readonly silent?: number;
  readonly detail?: string;
}

/** Returns the message of an error, cut to the bound of a log line. */
export const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message.slice(0, LOGGED_REASON_CHARACTERS) : 'no reason given';

/** Says that something went wrong in a zone. */
export const failedIn =
  (log: LogContext['log'], zone: string) =>
  (error: unknown): void =>
    log({ what: 'failed', zone, detail: reasonOf(error) });

/** The class of retention by tenant, from the settings. */
const retentionOf =
  ({ AUDIT_RETENTION }: Pick<Settings, 'AUDIT_RETENTION'>): RetentionOf =>
  (tenant = '') => {
    const { default: otherwise = 'standard', tenants = {} } = AUDIT_RETENTION ?? {};
    return (Object.hasOwn(tenants, tenant) && tenants[tenant]) || otherwise;
  };

/** `undefined` where no logs are kept: without keys nothing can be signed or hidden. */
export async function openLogContext(
  settings: Settings,
): Promise<(LogContext & { readonly store: BlobLogStore & NotifyingStore }) | undefined> {
  const { AUDIT_SIDECAR_KEY, AUDIT_ORIGIN = 'auricle', ZONES } = settings;
  const vault = await openVaultKey(settings, { now: () => Date.now(), after });
  const log: LogContext['log'] = (line) => console.log(JSON.stringify(line));
  const logKeys = await openLogKeys(settings, vault, (origin, error) =>
    log({ what: 'unsigned', zone: origin.split('/').at(-2) ?? '', detail: `p256: ${reasonOf(error)}` }),
  );
  if (!logKeys || AUDIT_SIDECAR_KEY === undefined) return undefined;
  const store = noticing(openBlobLogStore(storageAccountOf(settings)));
  const now = () => Date.now();
  const wrap = wrapWith(AUDIT_SIDECAR_KEY);
  const keys = new Map(ZONES.map((zone) => [zone, new SidecarKeys({ store, zone, wrap, now })]));
  const keysOf = (zone: string) => keys.get(zone) ?? new SidecarKeys({ store, zone, wrap, now });
  return {
    ...logKeys,
    store,
    zones: ZONES,
    base: AUDIT_ORIGIN,
    settings,
    hide: (zone) => openHide(keysOf(zone), retentionOf(settings)),
    keys: keysOf,
    now,
    log,
  };
}
