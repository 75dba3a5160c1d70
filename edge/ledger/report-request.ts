import type { RequestContext } from '../context.ts';
import { countRequest } from '../telemetry/count-request.ts';
import type { Owner } from './record.ts';

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

/** Facts of a line that only metrics and traces show. */
export interface Reported extends RequestLine {
  /** Tenant of a session. */
  readonly owner?: Owner | undefined;
  readonly pool?: string | undefined;
}

/** Action whose length is the client's choice. */
const LIVE = 'stream';

/** Ends the request for operators: a line of JSON where LOG_REQUESTS is set, its metrics, and its span. */
export function reportRequest(context: RequestContext, { owner, pool, ...line }: Reported): void {
  const { id, settings, address, span } = context;
  if (settings.logRequests) console.log(JSON.stringify({ event: 'request', request: id, address, ...line }));
  const { status, action = '', reason, model, audioSeconds, agent } = line;
  const outcome = reason ?? (status < 400 ? 'ok' : `http_${status}`);
  const milliseconds = action === LIVE ? undefined : line.milliseconds;
  // A refusal was counted where it was recorded.
  if (owner || !context.counted) {
    countRequest(context, owner, { action, outcome, model: pool && model, pool, milliseconds, audioSeconds });
  }
  span?.end(
    {
      'auricle.request': id,
      'http.response.status_code': status,
      'auricle.action': action || undefined,
      'auricle.model': model,
      'auricle.agent': agent,
      'auricle.audio_seconds': audioSeconds,
    },
    status >= 500 ? outcome : undefined,
  );
}
