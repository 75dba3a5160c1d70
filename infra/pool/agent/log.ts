/** What may stand in a log line. There is no field for audio, transcripts, form fields or tokens, and none is added. */
export interface LogFields {
  readonly reason?: string;
  /** Our own words about a refusal; refusals promise that their `detail` holds no content. */
  readonly detail?: string;
  readonly model?: string;
  readonly revision?: string;
  readonly count?: number;
  readonly milliseconds?: number;
}

export type LogEvent =
  | 'started'
  | 'stopping'
  | 'attested'
  | 'attest-failed'
  | 'connected'
  | 'disconnected'
  | 'drain'
  | 'engine-ready'
  | 'engine-lost'
  | 'model-broken'
  | 'model-loaded'
  | 'model-unloaded'
  | 'refused'
  | 'bug';

export type Log = (event: LogEvent, fields?: LogFields) => void;

/** One JSON object per line on standard output. */
export function createLog(agent: string, now: () => number, write: (line: string) => void): Log {
  return (event, fields = {}) =>
    write(`${JSON.stringify({ at: new Date(now()).toISOString(), agent, event, ...fields })}\n`);
}

/** A bug as a log may show it: its class and where it happened. Messages may quote what the code was working on. */
export function describeBug(error: unknown): LogFields {
  if (!(error instanceof Error)) return { detail: typeof error };
  const frames = (error.stack ?? '').split('\n').filter((line) => line.trim().startsWith('at '));
  return {
    reason: error.name,
    detail: frames
      .slice(0, 4)
      .map((line) => line.trim())
      .join(' | '),
  };
}

/** The same in one line, for the detail of a refusal. */
export function placeOfBug(error: unknown): string {
  const { reason, detail = '' } = describeBug(error);
  return reason === undefined ? detail : `${reason}: ${detail}`;
}
