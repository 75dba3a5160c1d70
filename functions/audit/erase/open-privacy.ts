// Dependencies of erasure, holds, retention and search, by zone.
import type { Rows } from '../../store/rows.ts';
import { failedIn, type LogContext } from '../context/log-context.ts';
import type { IndexContext } from '../entries/follow-log.ts';
import { subjectIndex } from '../entries/subject-rows.ts';
import { withdrawExports } from '../export/withdraw-exports.ts';
import type { Reporter } from '../report/report.ts';
import type { Reads } from '../report/report-reads.ts';
import type { EraseContext } from './erase-context.ts';

export type ZoneContext = EraseContext & IndexContext;

export interface PrivacyContext {
  readonly log: LogContext;
  readonly rows: Rows;
  readonly reads: Pick<Reads, 'note'>;
  /** `undefined` for one that is not served. */
  zone(name: string): ZoneContext | undefined;
  readonly zones: readonly ZoneContext[];
}

export interface PrivacyParts {
  /** The index of entries. */
  readonly rows: Rows;
  readonly exports: Rows;
  readonly reporter: Pick<Reporter, 'report'>;
  readonly reads: Pick<Reads, 'note'>;
}

export function openPrivacy(log: LogContext, { rows, exports, reporter, reads }: PrivacyParts): PrivacyContext {
  const zones = log.zones.map(
    (zone): ZoneContext => ({
      ...{ zone, rows, store: log.store, keys: log.keys(zone), now: log.now },
      index: subjectIndex(rows, zone),
      withdrawExports: (tenant) => withdrawExports({ ...log, rows: exports }, zone, tenant),
      report: (draft) => reporter.report(zone, draft),
      failed: failedIn(log.log, zone),
    }),
  );
  return { log, rows, reads, zones, zone: (name) => zones.find(({ zone }) => zone === name) };
}
