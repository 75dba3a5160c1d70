import { z } from 'zod';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { Place } from '../place.ts';
import type { LiveProtocolName } from '../protocol/live-protocol.ts';

/** Facts about an upgrade that the Worker passes to the session's object; never the token. */
export interface Handover {
  /** Request id of the upgrade, as in `x-request-id` and in the record. */
  readonly request: string;
  /** Protocol of the client. The name is on the wire between two versions of the edge. */
  readonly dialect: LiveProtocolName;
  readonly claims: Claims;
  readonly class: string | undefined;
  /** Place of the edge that took the upgrade; the object may be elsewhere. */
  readonly place?: Place | undefined;
  /** Trace context of the upgrade. */
  readonly traceparent?: string | undefined;
}

const HEADER = 'auricle-handover';

/** Headers that stay in the Worker: credentials, and the one that only the Worker may set. */
const dropped: ReadonlySet<string> = new Set(['authorization', 'cookie', 'sec-websocket-protocol', HEADER]);

/** The Worker alone sets this header, so its members need no check. */
const shape = z.custom<Handover>((value) => typeof value === 'object' && value !== null && 'claims' in value);

export function writeHandover(request: Request, handover: Handover): Request {
  const headers = new Headers();
  for (const [name, value] of request.headers) if (!dropped.has(name)) headers.set(name, value);
  const { claims } = handover;
  const plain = { ...handover, claims: { ...claims, scopes: [...claims.scopes] } };
  headers.set(HEADER, Buffer.from(JSON.stringify(plain)).toString('base64url'));
  return new Request(request.url, { method: 'GET', headers });
}

/** Throws without a handover: only the Worker can call. */
export function readHandover(headers: Headers): Handover {
  const raw: unknown = JSON.parse(Buffer.from(headers.get(HEADER) ?? '', 'base64url').toString('utf8'));
  const handover = shape.parse(raw);
  return { ...handover, claims: { ...handover.claims, scopes: new Set(handover.claims.scopes) } };
}
