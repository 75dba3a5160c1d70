// Dependencies of exports.
import type { Policy } from '../../../shared/audit/policy.ts';
import type { Rows } from '../../store/rows.ts';
import type { LogContext } from '../context/log-context.ts';
import type { Reporter } from '../report/report.ts';
import type { Reads } from '../report/report-reads.ts';

export interface ExportContext
  extends Pick<LogContext, 'store' | 'zones' | 'base' | 'settings' | 'signer' | 'keys' | 'now' | 'log'> {
  readonly rows: Rows;
  readonly report: Reporter['report'];
  readonly reads: Pick<Reads, 'note'>;
  /** The suggested policy for readers of a log. */
  policy(origin: string): Policy;
  /** Random bytes of an id. */
  random(count: number): Uint8Array;
  /** Lets everything else in this process go on for a moment: the logs are written by it, too. */
  breathe(): Promise<void>;
  /** Bytes of entries after which a part ends. */
  readonly partBytes: number;
  /** Bundles of entries that one step reads. */
  readonly scanBundles: number;
  /** Files of the verifier in every bundle: `VERIFY.md`, `verify.mjs`, `verify.html`. */
  readonly verifier: ReadonlyMap<string, Uint8Array>;
}
