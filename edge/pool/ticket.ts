import { importJWK, SignJWT } from 'jose';
import { limits } from '../../shared/limits.ts';
import type { Settings } from '../settings.ts';
import type { AgentSeal } from './setups.ts';

export interface TicketFacts {
  /** Unique per attempt: the agent refuses one it has seen. */
  readonly id: string;
  readonly agent: string;
  readonly tenant: string;
  readonly class: string;
  readonly model: string;
}

type SigningKey = Awaited<ReturnType<typeof importJWK>>;

const keys = new WeakMap<Settings, SigningKey>();

/** What tells an agent that this edge sent the request: fields in shared/pool/PROTOCOL.md. `now` in ms since 1970. */
export async function signTicket(
  facts: TicketFacts,
  seal: AgentSeal,
  settings: Settings,
  now: number,
): Promise<string> {
  let key = keys.get(settings);
  if (!key) {
    key = await importJWK(settings.ticketKey, 'ES256');
    keys.set(settings, key);
  }
  const issued = Math.floor(now / 1_000);
  const { kid } = settings.ticketKey;
  return new SignJWT({
    v: 1,
    jti: facts.id,
    aud: facts.agent,
    tenant: facts.tenant,
    class: facts.class,
    model: facts.model,
    enc: seal.enc,
    att: seal.att,
    suite: seal.setup.suite,
    iat: issued,
    exp: issued + limits.ticketSeconds.value,
    deadlineMs: limits.requestMs.value,
  })
    .setProtectedHeader({ alg: 'ES256', ...(kid !== undefined && { kid }) })
    .sign(key);
}
