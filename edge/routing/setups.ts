import { createHash } from 'node:crypto';
import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { ROSTER_AGENTS_MAX } from '../../shared/pool/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { verifyAttestation } from '../../shared/seal/attestation.ts';
import { SEAL_SETUP_MS } from '../../shared/seal/limits.ts';
import { type SealSetup, setupSender } from '../../shared/seal/setup.ts';
import { isSuite, suites } from '../../shared/seal/suites.ts';
import type { Settings } from '../settings.ts';

/** Suite that the edge seals with. */
export const SUITE = suites[5].id;

export interface AgentSeal {
  readonly setup: SealSetup;
  /** base64url SHA-256 of the encapsulated key and of the attestation, as the ticket names them. */
  readonly enc: string;
  readonly att: string;
  /** The token that was sealed to. */
  readonly attestation: string;
  /** ms since 1970. */
  readonly until: number;
}

/** One set-up per isolate and agent. Holds keys of requests to come, never of past ones beyond `until`. */
const setups = new Map<string, AgentSeal>();

/**
 * The set-up to an agent, after its attestation was verified here: the roster is not trusted with the choice of the
 * key that audio is sealed to. `fresh` reports that one was made now, for the record.
 */
export async function sealFor(
  entry: RosterEntry,
  settings: Settings,
  now: number,
): Promise<Result<{ seal: AgentSeal; fresh: boolean }>> {
  const { attestation } = entry;
  const { agent } = entry.description;
  const known = setups.get(agent);
  if (known && known.attestation === attestation && known.until > now) return ok({ seal: known, fresh: false });

  const attested = await verifyAttestation(attestation, settings.attestation, now);
  if (!attested.ok) return attested;
  if (attested.value.agent !== agent)
    return no(refuse('attestation_invalid', undefined, 'attestation: of another agent'));
  const suite = attested.value.suites.find(isSuite);
  if (suite === undefined) return no(refuse('attestation_invalid', undefined, 'attestation: no common suite'));

  const setup = await setupSender(attested.value.sealKey, suite, attestation);
  const until = Math.min(now + SEAL_SETUP_MS, attested.value.expires * 1_000);
  const seal = { setup, enc: digest(setup.enc), att: digest(attestation), attestation, until };
  if (!setups.has(agent) && setups.size >= ROSTER_AGENTS_MAX) {
    const oldest = setups.keys().next();
    if (!oldest.done) setups.delete(oldest.value);
  }
  setups.set(agent, seal);
  return ok({ seal, fresh: true });
}

/** The agent did not accept it: the next request makes a new one. */
export function forgetSeal(agent: string): void {
  setups.delete(agent);
}

const digest = (data: string | Uint8Array) => createHash('sha256').update(data).digest('base64url');
