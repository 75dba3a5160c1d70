// All that one process of the functions reports, for as long as it lives.
import { limits } from '../../shared/limits.ts';
import type { Settings } from '../settings.ts';
import type { LogDesk } from './log-desk.ts';
import { openReporter, type Reporter } from './report.ts';
import { reportPolicy } from './report-policy.ts';
import { Reads } from './report-reads.ts';

export interface Reports {
  readonly reporter: Reporter;
  readonly reads: Reads;
  /** Tells what has changed since the last process, and from then on what is counted. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function openReports(desk: LogDesk, settings: Settings): Reports {
  const reporter = openReporter({ ...desk, after });
  const reads = new Reads(reporter, desk.now);
  /** Zones whose rules are told. */
  const told = new Set<string>();
  const tellRules = async () => {
    for (const zone of desk.zones) {
      if (told.has(zone)) continue;
      if (await reportPolicy(desk.store, zone, settings, reporter).catch(() => false)) told.add(zone);
    }
  };
  // The platform's timers ring in one process of all; this is of each.
  let timer: ReturnType<typeof setInterval> | undefined;
  const look = async () => {
    await tellRules();
    await reads.flush();
    await reporter.close(limits.auditProducerIdleMs.value);
  };
  return {
    reporter,
    reads,
    async start() {
      timer ??= setInterval(() => void look(), limits.auditReadsMs.value).unref();
      await tellRules();
    },
    async stop() {
      clearInterval(timer);
      await reads.flush();
      await reporter.close(0);
    },
  };
}

function after(ms: number) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const rings = new Promise<void>((settle) => {
    timer = setTimeout(settle, ms);
  });
  return { rings, cancel: () => clearTimeout(timer) };
}
