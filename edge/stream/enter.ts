import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Claims, Scope } from '../../shared/tenant/claims.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../refuse.ts';
import { admit, recordDenial } from '../tenant/admit.ts';
import { rateLimitHeaders } from '../tenant/rate-limit.ts';
import { UNANSWERED } from './closing-sockets.ts';
import type { LiveDialect } from './dialect.ts';
import { writeHandover } from './handover.ts';
import { sockets } from './sockets.ts';

export interface Entrance {
  readonly claims: Claims;
  readonly dialect: LiveDialect['name'];
  /** The class the client wishes for. */
  readonly class?: string | undefined;
  /** Name of the session that the client resumes; a new one without it. */
  readonly session?: string | undefined;
  /** Sub-protocol to answer with: one that was offered, and never a credential. */
  readonly protocol?: string | undefined;
}

/** A name that a session can have. */
export const SESSION = /^[\w.-]{1,128}$/;

export const isSessionName = (name: string): boolean => SESSION.test(name);

/** Returns the refusal of a request that is no upgrade: that of its token, if it has no good one. */
export async function refuseUpgrade(
  request: Request,
  scopes: readonly [Scope, ...Scope[]],
  context: RequestContext,
): Promise<Refusal> {
  const claims = await admit(request, scopes, context);
  return claims.ok ? refuse('upgrade_missing') : claims.refusal;
}

/** Hands an upgrade whose caller is known to the object of its session, which answers 101. */
export async function enterStream(request: Request, entrance: Entrance, context: RequestContext): Promise<Response> {
  const { claims, dialect, protocol } = entrance;
  if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') return refuseWith(refuse('upgrade_missing'));
  const { session = crypto.randomUUID() } = entrance;
  const handover = { request: context.id, dialect, claims, class: entrance.class };
  const stub = context.env.STREAM.getByName(`${claims.tenant}/${session}`);
  const [answer, quota] = await Promise.all([
    stub.fetch(writeHandover(request, handover)),
    context.recorder.readQuota(claims, claims),
  ]);
  context.quota = quota;
  const { webSocket } = answer;
  // A copy: headers of what came from elsewhere cannot be changed.
  if (!webSocket) return new Response(answer.body, answer);
  return upgrade(webSocket, context, protocol);
}

/** 101 with the headers that clients look for. */
export function upgrade(
  webSocket: RuntimeSocket,
  { id, quota }: Pick<RequestContext, 'id' | 'quota'>,
  protocol?: string,
): Response {
  const headers = new Headers({ 'x-request-id': id, 'dg-request-id': id, ...rateLimitHeaders(quota) });
  if (protocol !== undefined) headers.set('sec-websocket-protocol', protocol);
  return new Response(null, { status: 101, webSocket, headers });
}

/** A socket that says a refusal and is closed, for clients that cannot read a refused handshake. */
export function openRefused(refusal: Refusal, tell: Pick<LiveDialect, 'close'>, now: number, request: string) {
  const { 0: theirs, 1: ours } = new WebSocketPair();
  ours.accept();
  const { frames, code, reason } = tell.close({ refusal }, now, request);
  for (const frame of frames) ours.send(frame);
  ours.close(code, reason);
  return { theirs, ours };
}

/**
 * Refuses an upgrade on an accepted socket, or by HTTP while too many of the tenant are closing. Records the denial of
 * a known caller. Ends the socket when the client does not answer the close frame.
 */
export function refuseStream(
  refusal: Refusal,
  tell: Pick<LiveDialect, 'close'>,
  context: RequestContext,
  caller?: { readonly claims: Claims; readonly action: string },
  protocol?: string,
): Response {
  const { surroundings } = context;
  if (caller) recordDenial(caller.claims, caller.action, refusal, context);
  if (sockets.checkClosing(caller?.claims)) return refuseWith(refusal);
  const { theirs, ours } = openRefused(refusal, tell, surroundings.now(), context.id);
  sockets.closing(caller?.claims, ours);
  const answered = new Promise<void>((resolve) => {
    ours.addEventListener('close', () => resolve());
    ours.addEventListener('error', () => resolve());
  });
  const ended = within(answered, limits.streamUnansweredMs.value, surroundings).then((end) => {
    sockets.closed(caller?.claims, ours);
    if (end === late) context.abort?.(UNANSWERED);
  });
  context.waitUntil(ended);
  return upgrade(theirs, context, protocol);
}
