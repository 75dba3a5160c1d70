import type { ModelDescription } from '../../../../shared/pool/description.ts';
import { type LiveReport, liveProofOf } from '../../../../shared/registry/live-report.ts';
import { callFunctions, type FunctionsOptions } from '../identity/call-functions.ts';
import type { Keys } from '../identity/keys.ts';
import { AGENT_FLUSH_MS } from '../settings/limits.ts';
import type { Log } from '../telemetry/log.ts';
import type { LiveBook } from './book.ts';

/** Interval of an agent's reports on its streams: a broken revision is caught within half a minute. */
export const LIVE_REPORT_S = 5;
/** Empty reports skipped in a row: one a minute still shows which revisions are where. */
export const LIVE_QUIET_REPORTS_MAX = 12;
/** Longest call of a report, which the next one repeats: a cold start takes seconds. */
const LIVE_REPORT_MS = 10_000;

export interface LiveReporterOptions extends Omit<FunctionsOptions, 'keys'> {
  readonly keys: Pick<Keys, 'boot' | 'current' | 'sign'>;
  readonly book: Pick<LiveBook, 'models'>;
  readonly describe: () => readonly ModelDescription[];
  readonly log: Log;
}

/**
 * Tells the functions what became of recordings: all counts each time, so that whatever got lost is in the next. Where
 * nothing is new it says so now and then only.
 */
export function createLiveReporter({ book, describe, log, ...options }: LiveReporterOptions) {
  const began = options.now();
  let seq = 0;
  let lastSent = '';
  let quiet = 0;
  let failing = false;
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;

  async function send(withinMs: number): Promise<void> {
    const models = book.models(describe());
    const text = JSON.stringify(models);
    const isNews = text !== lastSent;
    quiet = isNews ? 0 : quiet + 1;
    if (!isNews && quiet < LIVE_QUIET_REPORTS_MAX) return;
    quiet = 0;
    seq += 1;
    const report = JSON.stringify({ v: 1, boot: options.keys.boot, began, seq, models } satisfies LiveReport);
    try {
      const call = { path: '/api/agents/live', job: liveProofOf(report), body: { report }, withinMs };
      const response = await callFunctions(options, call);
      await response.body?.cancel();
      if (response.status !== 200) throw new Error(`status ${response.status}`);
      lastSent = text;
      failing = false;
    } catch (error) {
      // Once, not at each attempt.
      if (!failing) log('live-report-failed', { detail: error instanceof Error ? error.name : 'unknown' });
      failing = true;
    }
  }

  return {
    start() {
      timer = setInterval(() => {
        // One at a time: a slow answer must not let a crowd of them gather.
        sending ??= send(LIVE_REPORT_MS).finally(() => {
          sending = undefined;
        });
      }, LIVE_REPORT_S * 1_000);
      timer.unref();
    },
    /** Sends unreported counts, if that is quick. */
    async stop(): Promise<void> {
      clearInterval(timer);
      if (!timer) return;
      await sending;
      await send(AGENT_FLUSH_MS);
    },
  };
}
