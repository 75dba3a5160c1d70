import { type Refusal, refuse } from '../../shared/refusal.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import { readCredentials } from '../auth/credentials.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { auricleStream } from '../protocol/auricle-stream.ts';
import { deepgramListen } from '../protocol/deepgram-listen.ts';
import { refuseAsDeepgram } from '../protocol/deepgram-refuse.ts';
import { CONFIG_HEADER, openaiRealtime, refusedRealtime } from '../protocol/openai-realtime.ts';
import { readModelNames, resolveModel } from '../routing/model-names.ts';
import { enterStream, isSessionName, refuseStream, refuseUpgrade } from './enter.ts';

const ACTION = 'stream';

/** Live audio has a scope of its own for short-lived tokens; a token for recordings may stream, too. */
const SCOPES = ['stream', 'transcribe'] as const;

/** Sub-protocol of `/v1/stream`, and the prefix of a browser's token, which cannot set a header. */
const SUBPROTOCOL = 'auricle';
const TOKEN_PREFIX = 'auricle-token.';

const isUpgrade = ({ headers }: Request) => headers.get('upgrade')?.toLowerCase() === 'websocket';

const requestedClass = ({ headers }: Request) => headers.get('x-auricle-class') ?? undefined;

/** Answers `GET /v1/stream`, our own protocol. Refuses on an accepted socket, since browsers show no other refusal. */
export async function openStream(request: Request, context: RequestContext): Promise<Response> {
  if (!isUpgrade(request)) return refuseWith(await refuseUpgrade(request, SCOPES, context));
  const offered = (request.headers.get('sec-websocket-protocol') ?? '').split(',').map((one) => one.trim());
  const subprotocol = offered.includes(SUBPROTOCOL) ? SUBPROTOCOL : undefined;
  const token = offered.find((one) => one.startsWith(TOKEN_PREFIX))?.slice(TOKEN_PREFIX.length);
  const hasHeader = request.headers.has('authorization');
  const authorized = withHeaders(request, { authorization: token && !hasHeader ? `Bearer ${token}` : undefined });
  const url = new URL(request.url);
  const protocol = auricleStream(url, request.headers);
  if (!protocol.ok) return refuseWith(protocol.refusal);
  protocol.value.open({ id: '', request: context.id, now: 0, expires: 0 });

  const claims = await admit(authorized, SCOPES, context);
  if (!claims.ok) return refuseStream(claims.refusal, protocol.value, context, { subprotocol });
  const session = url.searchParams.get('session') ?? undefined;
  if (session !== undefined && !isSessionName(session)) {
    const refusal = refuse('field_invalid', { field: 'session', rule: 'it is the name that the edge gave' });
    return refuseStream(refusal, protocol.value, context, { claims: claims.value, action: ACTION, subprotocol });
  }
  const wanted = url.searchParams.get('class') ?? requestedClass(request);
  const entrance = { claims: claims.value, protocol: 'auricle-stream', class: wanted, session, subprotocol } as const;
  return enterStream(authorized, entrance, context);
}

/**
 * Answers `GET /v1/realtime`. Official clients lose the body of a refused handshake, so every refusal is an event on a
 * socket that is then closed.
 */
export async function openRealtime(request: Request, context: RequestContext): Promise<Response> {
  if (!isUpgrade(request)) return refuseWith(await refuseUpgrade(request, SCOPES, context));
  const { authorization, protocol: subprotocol } = readCredentials(request.headers);
  const authorized = withHeaders(request, { authorization });
  const claims = await admit(authorized, SCOPES, context);
  if (!claims.ok) return refuseStream(claims.refusal, refusedRealtime, context, { subprotocol });
  const config = claims.value.realtime;
  const configured = withHeaders(authorized, { [CONFIG_HEADER]: config && encodeURIComponent(JSON.stringify(config)) });
  const caller = { claims: claims.value, action: ACTION, subprotocol };
  const deny = (refusal: Refusal) => refuseStream(refusal, refusedRealtime, context, caller);
  if (claims.value.sealing === 'client') return deny(refuse('sealing_required'));
  const url = new URL(request.url);
  const protocol = openaiRealtime(url, configured.headers);
  if (!protocol.ok) return deny(protocol.refusal);
  // The session shows the default model, and the client may still name another one.
  const byDefault = (await readModelNames(claims.value, context))(undefined);
  if (protocol.value.route?.().model === undefined && byDefault) url.searchParams.set('model', byDefault);
  const wanted = requestedClass(request);
  const entrance = { claims: claims.value, protocol: 'openai-realtime', class: wanted, subprotocol } as const;
  return enterStream(new Request(url, configured), entrance, context);
}

/** Answers `GET /v1/listen`. Deepgram's clients retry after every close but a normal one, and never a refused handshake. */
export async function openListen(request: Request, context: RequestContext): Promise<Response> {
  if (!isUpgrade(request)) return refuseAsDeepgram(await refuseUpgrade(request, SCOPES, context), context.id);
  const { authorization, protocol: subprotocol } = readCredentials(request.headers);
  const authorized = withHeaders(request, { authorization });
  const claims = await admit(authorized, SCOPES, context);
  if (!claims.ok) return refuseAsDeepgram(claims.refusal, context.id);
  const deny = (refusal: Refusal) => refuseAsDeepgram(recordDenial(claims.value, ACTION, refusal, context), context.id);
  if (claims.value.sealing === 'client') return deny(refuse('sealing_required'));
  const protocol = deepgramListen(new URL(request.url));
  if (!protocol.ok) return deny(protocol.refusal);
  const names = await readModelNames(claims.value, context);
  const model = resolveModel(protocol.value.route?.().model, names, context);
  if (!model.ok) return deny(model.refusal);
  const wanted = requestedClass(request);
  const entrance = { claims: claims.value, protocol: 'deepgram-listen', class: wanted, subprotocol } as const;
  return enterStream(authorized, entrance, context);
}

/** Copies a request with other headers. Drops the header that only the edge may set, and keeps a header without a value. */
function withHeaders(request: Request, values: Readonly<Record<string, string | undefined>>): Request {
  const headers = new Headers(request.headers);
  headers.delete(CONFIG_HEADER);
  for (const [name, value] of Object.entries(values)) if (value !== undefined) headers.set(name, value);
  return new Request(request, { headers });
}
