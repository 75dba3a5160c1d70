import { importJWK, type JWTPayload, SignJWT } from 'jose';
import { TICKET_S } from '../../shared/seal/limits.ts';
import type { Settings } from '../settings.ts';
import type { AgentSeal } from './setups.ts';

/** Work budget of a ticket: more than the largest body over a 300 kbit/s link. */
export const REQUEST_MS = 3_600_000;

export interface TicketFacts {
  /** Unique per attempt: the agent refuses one it has seen. */
  readonly id: string;
  readonly agent: string;
  readonly tenant: string;
  readonly class: string;
  readonly model: string;
  /** Revision of the model that the agent serves the request with. */
  readonly revision: string;
  /** Work budget in ms; `REQUEST_MS` unless told. */
  readonly deadlineMs?: number;
}

type SigningKey = Awaited<ReturnType<typeof importJWK>>;

const keys = new WeakMap<Settings, SigningKey>();

/** Signs the ticket of a live stream (shared/pool/PROTOCOL.md). `now` in ms since 1970. */
export function signTicket(facts: TicketFacts, seal: AgentSeal, settings: Settings, now: number): Promise<string> {
  const issued = Math.floor(now / 1_000);
  return sign(
    {
      v: 1,
      jti: facts.id,
      aud: facts.agent,
      tenant: facts.tenant,
      class: facts.class,
      model: facts.model,
      revision: facts.revision,
      ...sealed(seal),
      iat: issued,
      exp: issued + TICKET_S,
      deadlineMs: facts.deadlineMs ?? REQUEST_MS,
    },
    settings,
  );
}

/** Signs the ticket of a sealed session, which all its requests share. */
export function signLaneTicket(agent: string, seal: AgentSeal, settings: Settings, now: number): Promise<string> {
  const issued = Math.floor(now / 1_000);
  const expires = Math.ceil(seal.until / 1_000);
  const enc = Buffer.from(seal.setup.enc).toString('base64url');
  return sign(
    { v: 2, jti: crypto.randomUUID(), aud: agent, ...sealed(seal), enc, iat: issued, exp: expires },
    settings,
  );
}

const sealed = ({ enc, att, setup }: AgentSeal) => ({ enc, att, suite: setup.suite });

async function sign(payload: JWTPayload, settings: Settings): Promise<string> {
  let key = keys.get(settings);
  if (!key) {
    key = await importJWK(settings.ticketKey, 'ES256');
    keys.set(settings, key);
  }
  const { kid } = settings.ticketKey;
  return new SignJWT(payload).setProtectedHeader({ alg: 'ES256', ...(kid !== undefined && { kid }) }).sign(key);
}
