// What exports need of the world.
import type { Policy } from '../../../shared/audit/policy.ts';
import type { Rows } from '../../store/rows.ts';
import type { LogDesk } from '../log/log-desk.ts';
import type { Reporter } from '../report/report.ts';
import type { Reads } from '../report/report-reads.ts';

export interface ExportDesk
  extends Pick<LogDesk, 'store' | 'zones' | 'base' | 'settings' | 'signer' | 'keys' | 'now' | 'log'> {
  readonly rows: Rows;
  readonly report: Reporter['report'];
  readonly reads: Pick<Reads, 'note'>;
  /** Whom the readers of a log are advised to believe. */
  policy(origin: string): Policy;
  /** Random bytes of an id. */
  random(count: number): Uint8Array;
  /** Lets everything else in this process go on for a moment: the logs are written by it, too. */
  breathe(): Promise<void>;
  /** Bytes of entries after which a part ends. */
  readonly partBytes: number;
  /** Bundles of entries that one step reads. */
  readonly scanBundles: number;
  /** What auditors verify with, as files of every bundle: `VERIFY.md`, `verify.mjs`, `verify.html`. */
  readonly verifier: ReadonlyMap<string, Uint8Array>;
}
