// All that one process of the functions reports, for as long as it lives.

import { PRODUCER_IDLE_MS } from '../../../shared/audit/limits.ts';
import type { Settings } from '../../settings.ts';
import type { LogContext } from '../context/log-context.ts';
import { after } from '../log/after.ts';
import { openReporter, REPORT_TIMEOUT_MS, type Reporter } from './report.ts';
import { reportPolicy, rulesOf } from './report-policy.ts';
import { Reads } from './report-reads.ts';

/** Interval for which reads of the record are counted before one entry reports them. */
const READS_COUNTED_MS = 60_000;

export interface Reports {
  readonly reporter: Reporter;
  readonly reads: Reads;
  /** Reports settings that changed since the last process, and from then on the counted reads. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function openReports(context: LogContext, settings: Settings): Reports {
  const reporter = openReporter({ ...context, after });
  const reads = new Reads(reporter, context.now);
  const rules = rulesOf(settings, context.policy);
  /** Zones whose settings are reported. */
  const reported = new Set<string>();
  let reporting: Promise<void> | undefined;
  const reportAll = async () => {
    const open = context.zones.filter((zone) => !reported.has(zone));
    await Promise.all(
      open.map(async (zone) => {
        if (await reportPolicy(context.store, zone, rules, reporter).catch(() => false)) reported.add(zone);
      }),
    );
  };
  const reportRules = () => {
    reporting ??= reportAll().finally(() => {
      reporting = undefined;
    });
    return reporting;
  };
  // The platform's timers ring in one process of all; this is of each.
  let timer: ReturnType<typeof setInterval> | undefined;
  const look = async () => {
    await reportRules();
    await reads.flush();
    await reporter.close(PRODUCER_IDLE_MS);
  };
  // Retries until the rules are reported: the log does not know yet which rules apply.
  let soon: ReturnType<typeof setInterval> | undefined;
  const again = async () => {
    await reportRules();
    if (reported.size === context.zones.length) clearInterval(soon);
  };
  return {
    reporter,
    reads,
    async start() {
      timer ??= setInterval(() => void look(), READS_COUNTED_MS).unref();
      await reportRules();
      if (reported.size < context.zones.length) soon ??= setInterval(() => void again(), REPORT_TIMEOUT_MS).unref();
    },
    async stop() {
      clearInterval(timer);
      clearInterval(soon);
      await reads.flush();
      await reporter.close(0);
    },
  };
}
