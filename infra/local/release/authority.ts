// Release authority of the zones' private keys for attested agents: the local counterpart of a key vault with
// secure key release.
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { z } from 'zod';
import { type Refusal, refusals, refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import type { AttestationPolicy } from '../../../shared/seal/attestation.ts';
import {
  answerRelease,
  decideRelease,
  type ReleaseAnswer,
  releaseRequest,
} from '../../../shared/seal/zone-key-release.ts';

export interface AuthoritySettings {
  readonly policy: AttestationPolicy;
  /** Issuer of pool tokens. */
  readonly issuer: { readonly issuer: string; readonly audience: string; readonly jwks: JSONWebKeySet };
  /** Private keys of each zone, newest first. */
  readonly keys: Readonly<Record<string, readonly JsonWebKey[]>>;
  /** Logs one line for each decision: agent, zone and result. Never a key or a token. */
  readonly log: (line: string) => void;
}

const poolClaims = z.object({ pool: z.string().min(1), zone: z.string().min(1), scope: z.string() });

/** `POST /v1/release`: from the caller's token and body to the answer, at `now` (ms since 1970). */
export function createAuthority({ policy, issuer, keys, log }: AuthoritySettings) {
  const issuerKeys = createLocalJWKSet(issuer.jwks);

  async function readPool(
    authorization: string | undefined,
    now: number,
  ): Promise<Result<{ pool: string; zone: string }>> {
    const token = /^bearer +([\w.-]+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) return no(refuse('token_missing'));
    try {
      const { payload } = await jwtVerify(token, issuerKeys, {
        issuer: issuer.issuer,
        audience: issuer.audience,
        algorithms: ['ES256'],
        typ: 'at+jwt',
        currentDate: new Date(now),
        requiredClaims: ['exp'],
      });
      const { data } = poolClaims.safeParse(payload);
      return data?.scope.split(' ').includes('pool') ? ok(data) : no(refuse('scope_missing', { scope: 'pool' }));
    } catch {
      return no(refuse('token_invalid'));
    }
  }

  async function decide(authorization: string | undefined, body: unknown, now: number): Promise<Result<ReleaseAnswer>> {
    const pool = await readPool(authorization, now);
    if (!pool.ok) return pool;
    const request = releaseRequest.safeParse(body);
    if (!request.success) return no(refuse('json_invalid'));
    const release = await decideRelease(request.data, { poolZone: pool.value.zone, policy, now });
    if (!release.ok) return release;
    const held = keys[release.value.zone];
    if (!held) return no(refuse('zone_unserved', { zone: release.value.zone }));
    log(`released ${release.value.zone} to ${release.value.agent} of ${pool.value.pool}`);
    return ok(await answerRelease(held, release.value, request.data));
  }

  return async (authorization: string | undefined, body: unknown, now: number): Promise<Result<ReleaseAnswer>> => {
    const decided = await decide(authorization, body, now);
    if (!decided.ok) log(`refused: ${describe(decided.refusal)}`);
    return decided;
  };
}

const describe = ({ reason, detail }: Refusal) => (detail === undefined ? reason : `${reason} (${detail})`);

export const statusOf = ({ reason }: Refusal): number => refusals[reason].status;
