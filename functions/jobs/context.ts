// Dependencies of the steps of a job: stores, clock and log lines.
import type { Reporter } from '../audit/report/report.ts';
import type { Settings } from '../settings.ts';
import type { Stores } from '../store/stores.ts';

export interface JobContext extends Stores {
  readonly settings: Pick<Settings, 'ZONES' | 'ZONE_KEYS' | 'MODE' | 'WEBHOOK_KEY'>;
  /** Present where logs are kept. */
  readonly audit?: Pick<Reporter, 'report'> | undefined;
  /** Milliseconds since 1970. */
  now(): number;
  /** Names and numbers only: lines have no content by construction. */
  log(line: LogLine): void;
}

/** Figures of the line `queue`, which each zone has each minute. */
export const queueFigures = {
  waiting: 'Jobs that no agent has taken',
  taken: 'Jobs that agents work on',
  dead: 'Jobs that failed five times',
  oldestSeconds: 'Age of the oldest open work; absent while the queues are empty',
} as const;

export interface LogLine extends Partial<Readonly<Record<keyof typeof queueFigures, number | undefined>>> {
  readonly what:
    | 'forged'
    | 'refused'
    | 'ended'
    | 'resent'
    | 'lost'
    | 'orphan'
    | 'unreadable'
    | 'replayed'
    | 'notice'
    | 'unbooked'
    | 'queue';
  readonly tenant?: string | undefined;
  readonly upload?: string | undefined;
  readonly zone?: string | undefined;
  readonly detail?: string | undefined;
  readonly count?: number | undefined;
}
