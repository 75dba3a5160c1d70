import { describeBug } from '../../../../shared/bug.ts';

/** Fields of a log line. None holds audio, transcripts, form fields or tokens, and none may be added that does. */
export interface LogFields {
  /** Id of the request at the edge, a dot, and the number of the attempt. */
  readonly request?: string;
  readonly reason?: string;
  /** Our own words about a refusal; refusals promise that their `detail` holds no content. */
  readonly detail?: string;
  readonly model?: string;
  /** Kind of a job. */
  readonly job?: string;
  readonly revision?: string;
  readonly count?: number;
  readonly milliseconds?: number;
  /** A revision's load into a tier, or drop from it. */
  readonly act?: 'load' | 'drop';
  readonly tier?: string;
  /** Phases of a load. */
  readonly copyMs?: number;
  readonly loadMs?: number;
  readonly warmUpMs?: number;
}

export type LogEvent =
  | 'started'
  | 'stopping'
  | 'tls-loaded'
  | 'tls-refused'
  | 'attested'
  | 'attest-failed'
  | 'token-failed'
  | 'waiting'
  | 'connected'
  | 'disconnected'
  | 'drain'
  | 'release'
  | 'release-refused'
  | 'engine-ready'
  | 'engine-lost'
  | 'engine-loading'
  | 'engine-unreachable'
  | 'model-load-failed'
  | 'model-load-requested'
  | 'model-load-recovered'
  | 'model-broken'
  | 'model-refused'
  | 'model-unsigned'
  | 'model-warm'
  | 'model-loaded'
  | 'model-unloaded'
  | 'tier-moved'
  | 'request'
  | 'refused'
  | 'spans-lost'
  | 'stream-refused'
  | 'worker-lost'
  | 'job-failed'
  | 'job-refused'
  | 'job-unreadable'
  | 'degraded'
  | 'queue-lost'
  | 'queue-back'
  | 'live-report-failed'
  | 'bug';

export type Log = (event: LogEvent, fields?: LogFields) => void;

/** Returns a log that writes one JSON object per line. */
export function createLog(agent: string, now: () => number, write: (line: string) => void): Log {
  return (event, fields = {}) =>
    write(`${JSON.stringify({ at: new Date(now()).toISOString(), agent, event, ...fields })}\n`);
}

/** Describes a bug as fields of a line. */
export function bugFields(error: unknown): LogFields {
  const { name, place } = describeBug(error);
  return { reason: name, detail: place };
}

/** Describes a bug as the detail of a refusal. */
export function bugDetail(error: unknown): string {
  const { name, place } = describeBug(error);
  return `${name}: ${place}`;
}
