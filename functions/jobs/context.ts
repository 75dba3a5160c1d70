// What every step of an upload needs: the stores, a clock, and where to say what happened.
import type { Reporter } from '../audit/report/report.ts';
import type { Settings } from '../settings.ts';
import type { Stores } from '../stores.ts';

export interface JobContext extends Stores {
  readonly settings: Pick<Settings, 'ZONES' | 'ZONE_KEYS' | 'MODE' | 'WEBHOOK_KEY'>;
  /** Where logs are kept. */
  readonly audit?: Pick<Reporter, 'report'> | undefined;
  /** Milliseconds since 1970. */
  now(): number;
  /** Names and numbers only: lines have no content by construction. */
  log(line: LogLine): void;
}

export interface LogLine {
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
  /** Of a zone's queues: jobs that nobody has taken, that are worked on, that nobody could finish, and the oldest's age. */
  readonly waiting?: number | undefined;
  readonly taken?: number | undefined;
  readonly dead?: number | undefined;
  readonly oldestSeconds?: number | undefined;
}
