import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../refuse.ts';
import { recordDenial } from '../tenant/admit.ts';
import { rateLimitHeaders } from '../tenant/rate-limit.ts';
import type { LiveDialect } from './dialect.ts';
import { writeHandover } from './handover.ts';

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

const SESSION = /^[\w.-]{1,128}$/;

/** Is it a name that a session can have. */
export const isSessionName = (name: string): boolean => SESSION.test(name);

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

/**
 * A refusal where a refused handshake would tell the client nothing: the socket is accepted, says what a dialect says of
 * it, and is closed. The denial is recorded when the caller is known.
 */
export function refuseStream(
  refusal: Refusal,
  tell: Pick<LiveDialect, 'close'>,
  context: RequestContext,
  caller?: { readonly claims: Claims; readonly action: string },
  protocol?: string,
): Response {
  if (caller) recordDenial(caller.claims, caller.action, refusal, context);
  const { 0: theirs, 1: ours } = new WebSocketPair();
  ours.accept();
  const { frames, code, reason } = tell.close({ refusal }, context.surroundings.now(), context.id);
  for (const frame of frames) ours.send(frame);
  ours.close(code, reason);
  return upgrade(theirs, context, protocol);
}
