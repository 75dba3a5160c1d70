import { refuse } from '../../shared/refusal.ts';
import type { RequestContext } from '../context.ts';
import { auricleStream } from '../dialect/auricle-stream.ts';
import { refuseWith } from '../refuse.ts';
import { admit } from '../tenant/admit.ts';
import { enterStream, isSessionName, refuseStream, refuseUpgrade } from './enter.ts';

/** Sub-protocol of `/v1/stream`, and what a browser, which can set no header, puts its token behind. */
const PROTOCOL = 'auricle';
const TOKEN = 'auricle-token.';

const ACTION = 'stream';

/** Live sound has a scope of its own, the one of short-lived tokens; who may send recordings may also speak. */
const SCOPES = ['stream', 'transcribe'] as const;

/** `GET /v1/stream`: our own dialect. Refusals are told on an accepted socket, since browsers show no other. */
export async function serveStream(request: Request, context: RequestContext): Promise<Response> {
  if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') {
    return refuseWith(await refuseUpgrade(request, SCOPES, context));
  }
  const offered = (request.headers.get('sec-websocket-protocol') ?? '').split(',').map((one) => one.trim());
  const protocol = offered.includes(PROTOCOL) ? PROTOCOL : undefined;
  const inProtocol = offered.find((one) => one.startsWith(TOKEN))?.slice(TOKEN.length);
  const headers = new Headers(request.headers);
  if (inProtocol !== undefined && !headers.has('authorization')) headers.set('authorization', `Bearer ${inProtocol}`);
  const known = new Request(request, { headers });
  const url = new URL(request.url);
  const dialect = auricleStream(url, request.headers);
  if (!dialect.ok) return refuseWith(dialect.refusal);
  dialect.value.open({ id: '', request: context.id, now: 0, expires: 0 });

  const claims = await admit(known, SCOPES, context);
  if (!claims.ok) return refuseStream(claims.refusal, dialect.value, context, undefined, protocol);
  const session = url.searchParams.get('session') ?? undefined;
  if (session !== undefined && !isSessionName(session)) {
    const refusal = refuse('field_invalid', { field: 'session', rule: 'it is the name that the edge gave' });
    const caller = { claims: claims.value, action: ACTION };
    return refuseStream(refusal, dialect.value, context, caller, protocol);
  }
  const wish = url.searchParams.get('class') ?? request.headers.get('x-auricle-class') ?? undefined;
  const entrance = { claims: claims.value, dialect: dialect.value.name, class: wish, session, protocol };
  return enterStream(known, entrance, context);
}
