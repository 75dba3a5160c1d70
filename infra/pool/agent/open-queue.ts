import type { Registry } from 'prom-client';
import { createDegrader, type Degrader } from './degrade/degrader.ts';
import { ResultCache } from './degrade/result-cache.ts';
import { createDispatcher, type Dispatcher, type DispatcherOptions } from './engine/dispatch.ts';
import { createWindowFeedback } from './engine/window-feedback.ts';
import { noWindows } from './engine/windows.ts';
import type { Outbox } from './identity/record.ts';
import type { Settings } from './settings/settings.ts';
import { registerGauges } from './telemetry/gauges.ts';
import type { Log } from './telemetry/log.ts';

interface QueueParts extends Omit<DispatcherOptions, 'slots' | 'windows' | 'onQueued'> {
  readonly settings: Pick<Settings, 'agent' | 'slots' | 'windows' | 'degradeWindowMs'>;
  readonly registry: Registry;
  readonly outbox: Pick<Outbox, 'record'>;
  readonly log: Log;
  /** Use of the GPUs, 0 to 1; `undefined` where it is not known. */
  readonly gpu: () => number | undefined;
  /** Degrader of a test. */
  readonly given?: Degrader | undefined;
}

/** Opens the queue before the engine with its windows, and the degrader that its waits drive. */
export function openQueue({ settings, registry, outbox, log, gpu, given, ...options }: QueueParts) {
  const { agent, slots } = settings;
  const { now } = options;
  const results = new ResultCache();
  const degrader: Degrader =
    given ??
    createDegrader({
      now,
      windowMs: settings.degradeWindowMs,
      onMoved(from, to) {
        if (to === 0) results.clear();
        outbox.record({ type: 'pool.degrade', agent, from, to });
        log('degraded', { count: to });
      },
    });
  const depth = (): number => Object.values(dispatcher.queued()).reduce((sum, count) => sum + count, 0);
  const feedback = createWindowFeedback(now, () => ({ depth: depth(), gpu: gpu() }));
  const windows = settings.windows ? feedback.windows : () => noWindows;
  const dispatcher: Dispatcher = createDispatcher({
    ...options,
    slots,
    windows,
    onQueued(name, outcome) {
      feedback.count();
      degrader.note(name, outcome);
    },
  });
  registerGauges(registry, {
    auricle_agent_degraded: ['Level of degradation: 0 none, 1 features off, 2 8 kHz, 3 cached results', degrader.level],
    auricle_agent_window_seconds: ['Longest window of batch work; 0 without windows', () => windows().macroMs / 1_000],
    auricle_agent_release_batch: ['Utterances that end a window early', () => windows().batch],
  });
  return { dispatcher, degrader, results };
}
