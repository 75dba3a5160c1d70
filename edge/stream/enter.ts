import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Claims, Scope } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { rateLimitHeaders } from '../http/rate-limit.ts';
import { refuseWith } from '../http/refuse.ts';
import type { LiveProtocol, LiveProtocolName } from '../protocol/live-protocol.ts';
import { STREAM_CLOSE_TIMEOUT_MS, UNANSWERED } from './closing-sockets.ts';
import { writeHandover } from './handover.ts';
import { sockets } from './sockets.ts';

export interface Entrance {
  readonly claims: Claims;
  readonly protocol: LiveProtocolName;
  /** Requested class. */
  readonly class?: string | undefined;
  /** Name of the session that the client resumes; a new one if absent. */
  readonly session?: string | undefined;
  /** Offered sub-protocol to answer with; never a credential. */
  readonly subprotocol?: string | undefined;
}

/** Pattern of session names. */
export const SESSION = /^[\w.-]{1,128}$/;

export const isSessionName = (name: string): boolean => SESSION.test(name);

/** Returns the refusal of a request that is no upgrade: that of its token, if the token is not valid. */
export async function refuseUpgrade(
  request: Request,
  scopes: readonly [Scope, ...Scope[]],
  context: RequestContext,
): Promise<Refusal> {
  const claims = await admit(request, scopes, context);
  return claims.ok ? refuse('upgrade_missing') : claims.refusal;
}

/** Hands an authorised upgrade to the object of its session, which answers 101. */
export async function enterStream(request: Request, entrance: Entrance, context: RequestContext): Promise<Response> {
  const { claims, protocol: dialect, subprotocol } = entrance;
  if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') return refuseWith(refuse('upgrade_missing'));
  const { session = crypto.randomUUID() } = entrance;
  const traceparent = context.span?.traceparent;
  const handover = { request: context.id, dialect, claims, class: entrance.class, place: context.place, traceparent };
  const stub = context.env.STREAM.getByName(`${claims.tenant}/${session}`);
  const [answer, quota] = await Promise.all([
    stub.fetch(writeHandover(request, handover)),
    context.recorder.readQuota(claims, claims),
  ]);
  context.quota = quota;
  // The object counts its sessions and its refusals.
  context.counted = true;
  const { webSocket } = answer;
  // A copy: headers of a fetched response are immutable.
  if (!webSocket) return new Response(answer.body, answer);
  return upgrade(webSocket, context, subprotocol);
}

/** Returns 101 with the headers that clients read. */
function upgrade(
  webSocket: RuntimeSocket,
  { id, quota }: Pick<RequestContext, 'id' | 'quota'>,
  subprotocol?: string,
): Response {
  const headers = new Headers({ 'x-request-id': id, 'dg-request-id': id, ...rateLimitHeaders(quota) });
  if (subprotocol !== undefined) headers.set('sec-websocket-protocol', subprotocol);
  return new Response(null, { status: 101, webSocket, headers });
}

/** Opens a socket that carries a refusal and closes, for clients that cannot read a refused handshake. */
export function openRefused(refusal: Refusal, protocol: Pick<LiveProtocol, 'close'>, now: number, request: string) {
  const { 0: theirs, 1: ours } = new WebSocketPair();
  ours.accept();
  const { frames, code, reason } = protocol.close({ refusal }, now, request);
  for (const frame of frames) ours.send(frame);
  ours.close(code, reason);
  return { theirs, ours };
}

export interface RefusedCaller {
  /** Absent for a caller whose token was refused. */
  readonly claims?: Claims;
  readonly action?: string;
  readonly subprotocol?: string | undefined;
}

/**
 * Refuses an upgrade on an accepted socket, or by HTTP while too many of the tenant are closing. Records the denial of
 * a known caller. Ends the socket when the client does not answer the close frame.
 */
export function refuseStream(
  refusal: Refusal,
  protocol: Pick<LiveProtocol, 'close'>,
  context: RequestContext,
  { claims, action = '', subprotocol }: RefusedCaller,
): Response {
  const { runtime } = context;
  if (claims) recordDenial(claims, action, refusal, context);
  if (sockets.checkClosing(claims)) return refuseWith(refusal);
  const { theirs, ours } = openRefused(refusal, protocol, runtime.now(), context.id);
  sockets.closing(claims, ours);
  const answered = new Promise<void>((resolve) => {
    ours.addEventListener('close', () => resolve());
    ours.addEventListener('error', () => resolve());
  });
  const ended = within(answered, STREAM_CLOSE_TIMEOUT_MS, runtime).then((end) => {
    sockets.closed(claims, ours);
    if (end === late) context.abort?.(UNANSWERED);
  });
  context.waitUntil(ended);
  return upgrade(theirs, context, subprotocol);
}
