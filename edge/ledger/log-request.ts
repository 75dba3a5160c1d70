import type { RequestContext } from '../context.ts';

/** Facts of an answered request: names and numbers, no query, no subject, no content. */
export interface RequestLine {
  readonly status: number;
  readonly milliseconds: number;
  /** Action of a session. */
  readonly action?: string | undefined;
  readonly reason?: string | undefined;
  readonly model?: string | undefined;
  readonly audioSeconds?: number | undefined;
  readonly agent?: string | undefined;
}

/** Logs one line of JSON per request, where LOG_REQUESTS is set. */
export function logRequest({ id, settings, address }: RequestContext, line: RequestLine): void {
  if (settings.logRequests) console.log(JSON.stringify({ event: 'request', request: id, address, ...line }));
}
