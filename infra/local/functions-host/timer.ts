// Timer trigger: six-field NCRONTAB expressions in UTC, never two runs of one timer at a time, and each run in one host.
import { Cron } from 'croner';
import { describe, type HostContext } from './context.ts';
import { invoke, json, newRequest } from './invoke.ts';
import { writeOutputs } from './outputs.ts';
import { fillSettings } from './patterns.ts';
import type { Trigger } from './registry.ts';
import { claimRun } from './timer-claim.ts';

/** Runs the timer now and returns whether it succeeded; POST /admin/functions/{name} does the same. */
export type RunNow = () => Promise<boolean>;

export function listenToTimer(context: HostContext, { target, triggerName, binding }: Trigger): RunNow {
  const schedule = fillSettings(binding.schedule ?? '', context.settings);
  const run = async (scheduled?: Date | null): Promise<boolean> => {
    const status = {
      last: (scheduled ?? new Date()).toISOString(),
      next: (cron.nextRun() ?? new Date()).toISOString(),
      lastUpdated: new Date().toISOString(),
    };
    // Never past due: runs missed while the stack was down are skipped (DIFFERENCES.md).
    const timer = { schedule: { adjustForDST: true }, scheduleStatus: status, isPastDue: false };
    try {
      const request = newRequest(target, triggerName, json(timer));
      await writeOutputs(context, target, await invoke(target, request), {});
      return true;
    } catch (error) {
      context.log('error', `${target.metadata.name} failed: ${describe(error)}`);
      return false;
    }
  };
  const runOnce = async (scheduled: Date | null): Promise<void> => {
    try {
      if (scheduled && (await claimRun(context, target.metadata.name, scheduled))) await run(scheduled);
    } catch (error) {
      context.log('error', `${target.metadata.name}: cannot claim its run: ${describe(error)}`);
    }
  };
  const cron = new Cron(schedule, { timezone: 'UTC', protect: true, mode: '6-part' }, async () => {
    const scheduled = due;
    due = cron.nextRun();
    await context.track(runOnce(scheduled));
  });
  let due = cron.nextRun();
  context.stopping.addEventListener('abort', () => cron.stop(), { once: true });
  if (binding.runOnStartup) void context.track(run());
  return () => context.track(run());
}
