import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../refuse.ts';
import { enterStream, refuseStream, refuseUpgrade } from '../stream/enter.ts';
import { admit, recordDenial } from '../tenant/admit.ts';
import { readCredentials } from '../tenant/credentials.ts';
import { deepgramListen } from './deepgram-listen.ts';
import { refuseAsDeepgram } from './deepgram-refuse.ts';
import { CONFIG_HEADER, openaiRealtime, refusedRealtime } from './openai-realtime.ts';

const ACTION = 'stream';

/** Live sound has a scope of its own, the one of short-lived tokens; who may send recordings may also speak. */
const SCOPES = ['stream', 'transcribe'] as const;

const isUpgrade = ({ headers }: Request) => headers.get('upgrade')?.toLowerCase() === 'websocket';

/**
 * `GET /v1/realtime`. Official clients lose what a refused handshake says, so whatever is wrong is told as an event on
 * a socket that is then closed.
 */
export async function openRealtime(request: Request, context: RequestContext): Promise<Response> {
  if (!isUpgrade(request)) return refuseWith(await refuseUpgrade(request, SCOPES, context));
  const { authorization, protocol, beta } = readCredentials(request.headers);
  const known = withHeaders(request, { authorization, 'openai-beta': beta ? 'realtime=v1' : undefined });
  const claims = await admit(known, SCOPES, context);
  if (!claims.ok) return refuseStream(claims.refusal, refusedRealtime, context, undefined, protocol);
  const remembered = claims.value.realtime;
  const ours = withHeaders(known, { [CONFIG_HEADER]: remembered && encodeURIComponent(JSON.stringify(remembered)) });
  const caller = { claims: claims.value, action: ACTION };
  const denied = (refusal: Refusal) => refuseStream(refusal, refusedRealtime, context, caller, protocol);
  if (claims.value.sealing === 'client') return denied(refuse('sealing_required'));
  const dialect = openaiRealtime(new URL(request.url), ours.headers);
  if (!dialect.ok) return denied(dialect.refusal);
  const wish = request.headers.get('x-auricle-class') ?? undefined;
  return enterStream(ours, { claims: claims.value, dialect: 'openai-realtime', class: wish, protocol }, context);
}

/** `GET /v1/listen`. Deepgram's clients come back after every close but an orderly one, and never to a refused handshake. */
export async function openListen(request: Request, context: RequestContext): Promise<Response> {
  if (!isUpgrade(request)) return refuseAsDeepgram(await refuseUpgrade(request, SCOPES, context), context.id);
  const { authorization, protocol } = readCredentials(request.headers);
  const known = withHeaders(request, { authorization });
  const claims = await admit(known, SCOPES, context);
  if (!claims.ok) return refuseAsDeepgram(claims.refusal, context.id);
  const denied = (refusal: Refusal) => {
    recordDenial(claims.value, ACTION, refusal, context);
    return refuseAsDeepgram(refusal, context.id);
  };
  if (claims.value.sealing === 'client') return denied(refuse('sealing_required'));
  const dialect = deepgramListen(new URL(request.url));
  if (!dialect.ok) return denied(dialect.refusal);
  const wish = request.headers.get('x-auricle-class') ?? undefined;
  return enterStream(known, { claims: claims.value, dialect: 'deepgram-listen', class: wish, protocol }, context);
}

/** The same request; a header that is `undefined` is left as it was, but nobody else can say what only we do. */
function withHeaders(request: Request, wanted: Readonly<Record<string, string | undefined>>): Request {
  const headers = new Headers(request.headers);
  headers.delete(CONFIG_HEADER);
  for (const [name, value] of Object.entries(wanted)) if (value !== undefined) headers.set(name, value);
  return new Request(request, { headers });
}
