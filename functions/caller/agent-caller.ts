// Authentication of attested agents of a zone, for one job.
import {
  compactVerify,
  createLocalJWKSet,
  createRemoteJWKSet,
  decodeJwt,
  errors,
  importJWK,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import { z } from 'zod';
import { agentProof, PROOF_TYPE } from '../../shared/callers.ts';
import { CLOCK_SKEW_S, describeOffset } from '../../shared/clock-offset.ts';
import { SERVICE_TOKEN_S } from '../../shared/jobs/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { verifyAttestation } from '../../shared/seal/attestation.ts';
import { allowsScope, allowsType } from '../../shared/tenant/issuer.ts';
import type { Settings } from '../settings.ts';
import type { Issuer } from '../settings-schema.ts';
import { bearerOf } from './edge-caller.ts';

export interface AgentCaller {
  readonly agent: string;
  readonly pool: string;
  readonly zone: string;
}

export type AgentSettings = Pick<Settings, 'ISSUERS' | 'ATTESTATION'>;

const poolClaims = z.object({ pool: z.string(), zone: z.string(), scope: z.string() });
const malformed = (detail: string) => no(refuse('token_invalid', undefined, detail));

interface AgentProof {
  readonly proof: string;
  /** Key of the requested job. A proof for another job is refused. */
  readonly job: string;
}

/** Verifies the proof of an agent. */
export async function verifyProof(
  { proof, job }: AgentProof,
  settings: AgentSettings,
  now: number,
): Promise<Result<string>> {
  if (!settings.ATTESTATION) return no(refuse('uploads_closed', undefined, 'no ATTESTATION'));
  try {
    // The proof is decoded before it is verified, to find its key; it counts only once its signature is good.
    const claimed = agentProof.safeParse(decodeJwt(proof));
    if (!claimed.success) return malformed('proof');
    const attested = await verifyAttestation(claimed.data.attestation, settings.ATTESTATION, now);
    if (!attested.ok) return attested;
    const key = await importJWK({ ...attested.value.signKey, kty: 'EC' }, 'ES256');
    const { protectedHeader } = await compactVerify(proof, key, { algorithms: ['ES256'] });
    const { agent, iat } = claimed.data;
    const age = now / 1_000 - iat;
    const skew = CLOCK_SKEW_S;
    if (protectedHeader.typ !== PROOF_TYPE) return malformed('proof: typ');
    if (claimed.data.job !== job) return malformed('proof: another job');
    if (agent !== attested.value.agent) return malformed('proof: another agent');
    if (age > SERVICE_TOKEN_S + skew || age < -skew) {
      const rule = describeOffset("the agent's", iat * 1_000, now);
      return no(refuse('token_expired', rule === undefined ? undefined : { rule }));
    }
    return ok(agent);
  } catch (error) {
    return malformed(error instanceof errors.JOSEError ? error.code : 'proof: unreadable');
  }
}

/** Key sets of this process. jose fetches a remote one again when a key is unknown, at most every 30 s. */
const keySets = new WeakMap<Issuer, JWTVerifyGetKey>();

function keySetOf(row: Issuer): JWTVerifyGetKey {
  const { jwks = { keys: [] }, jwksUrl } = row;
  const keys =
    keySets.get(row) ?? (jwksUrl === undefined ? createLocalJWKSet(jwks) : createRemoteJWKSet(new URL(jwksUrl)));
  keySets.set(row, keys);
  return keys;
}

/** Codes of jose for a missing or invalid key set. A failed network is no error of jose. */
const keyFaults: ReadonlySet<string> = new Set([
  errors.JWKSTimeout.code,
  errors.JWKSInvalid.code,
  errors.JOSEError.code,
]);

/** Verifies the pool token of an agent. */
export async function verifyPool(
  authorization: string | null,
  { ISSUERS }: AgentSettings,
  now: number,
): Promise<Result<Omit<AgentCaller, 'agent'>>> {
  const token = bearerOf(authorization);
  if (token === undefined) return no(refuse('token_missing'));
  if (!ISSUERS) return no(refuse('uploads_closed', undefined, 'no ISSUERS'));
  try {
    const claimed = decodeJwt(token).iss;
    const row = ISSUERS.find((entry) => entry.issuer === claimed && allowsScope(entry, 'pool'));
    if (!row) return malformed('issuer is not trusted with pool tokens');
    const { issuer, audience, algorithms } = row;
    const { payload, protectedHeader } = await jwtVerify(token, keySetOf(row), {
      issuer,
      audience,
      algorithms: [...algorithms],
      currentDate: new Date(now),
      clockTolerance: CLOCK_SKEW_S,
      requiredClaims: ['exp'],
    });
    if (!allowsType(row, protectedHeader.typ)) return malformed('pool token: typ');
    const { data } = poolClaims.safeParse(payload);
    if (!data?.scope.split(' ').includes('pool')) return no(refuse('scope_missing', { scope: 'pool' }));
    return ok({ pool: data.pool, zone: data.zone });
  } catch (error) {
    if (error instanceof errors.JWTExpired) return no(refuse('token_expired'));
    const code = error instanceof errors.JOSEError ? error.code : undefined;
    if (code !== undefined && !keyFaults.has(code)) return malformed(code);
    // Without the issuer's key set the token can be neither trusted nor refused.
    return no(
      refuse('identity_unavailable', undefined, `keys of the issuer are not available: ${code ?? 'unreachable'}`),
    );
  }
}
