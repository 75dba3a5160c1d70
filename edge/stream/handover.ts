import { z } from 'zod';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { DialectName } from './dialect.ts';

/** Facts about a connection that the Worker hands to the session's object. The token is never among them. */
export interface Handover {
  /** Request id of the upgrade, as in `x-request-id` and in the record. */
  readonly request: string;
  readonly dialect: DialectName;
  readonly claims: Claims;
  readonly class: string | undefined;
}

const HEADER = 'auricle-handover';

/** Headers that are the Worker's business: credentials, and what only it may say. */
const kept: ReadonlySet<string> = new Set(['authorization', 'cookie', 'sec-websocket-protocol', HEADER]);

/** Made by the Worker and read by its own object: what a client sends under this name is thrown away. */
const shape = z.custom<Handover>((value) => typeof value === 'object' && value !== null && 'claims' in value);

export function writeHandover(request: Request, handover: Handover): Request {
  const headers = new Headers();
  for (const [name, value] of request.headers) if (!kept.has(name)) headers.set(name, value);
  const { claims } = handover;
  const plain = { ...handover, claims: { ...claims, scopes: [...claims.scopes] } };
  headers.set(HEADER, Buffer.from(JSON.stringify(plain)).toString('base64url'));
  return new Request(request.url, { method: 'GET', headers });
}

/** Throws when there is none: only the Worker can call. */
export function readHandover(headers: Headers): Handover {
  const raw: unknown = JSON.parse(Buffer.from(headers.get(HEADER) ?? '', 'base64url').toString('utf8'));
  const handover = shape.parse(raw);
  return { ...handover, claims: { ...handover.claims, scopes: new Set(handover.claims.scopes) } };
}
