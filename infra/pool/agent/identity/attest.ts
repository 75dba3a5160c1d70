import { createHash } from 'node:crypto';
import { decodeJwt, importJWK, type JWK, SignJWT } from 'jose';
import { z } from 'zod';
import type { Settings } from '../settings/settings.ts';
import { readJson } from '../settings/settings.ts';

/**
 * Longest call of an attestation sidecar, which queries the processor and an authority; a slower call is
 * repeated.
 */
export const ATTESTATION_MS = 30_000;

/** Data that the authority binds to the agent's environment; becomes the claim `x-ms-runtime`. */
export interface RuntimeData {
  readonly keys: readonly JsonWebKey[];
  readonly suites: readonly number[];
  readonly agent: string;
}

export interface Attestation {
  /** Compact JWS of the authority. */
  readonly token: string;
  /** Seconds since 1970. */
  readonly expires: number;
}

/** Asks an authority; rejects when it cannot be reached or refuses, and is asked again later. */
export type Attest = (runtime: RuntimeData, now: number) => Promise<Attestation>;

/** Life of a self-issued token, in seconds; short, so that renewal is an everyday event in development. */
const DEVELOPMENT_SECONDS = 3_600;

type Kinds = { [K in Settings['attestation']['kind']]: Extract<Settings['attestation'], { kind: K }> };

const authorities: { [K in keyof Kinds]: (settings: Kinds[K]) => Attest } = {
  /** Claims as Microsoft Azure Attestation writes them for a container group, signed by a key of the local stack. */
  development: (settings) => async (runtime, now) => {
    const jwk = readJson(settings.keyFile) as JWK;
    const alg = jwk.alg ?? 'RS256';
    const seconds = Math.floor(now / 1_000);
    const expires = seconds + DEVELOPMENT_SECONDS;
    const digest = createHash('sha256').update(JSON.stringify(runtime)).digest('hex');
    const token = await new SignJWT({
      'x-ms-ver': '1.0',
      'x-ms-attestation-type': 'sevsnpvm',
      'x-ms-compliance-status': 'azure-compliant-uvm',
      'x-ms-sevsnpvm-is-debuggable': false,
      'x-ms-sevsnpvm-vmpl': 0,
      'x-ms-sevsnpvm-hostdata': createHash('sha256').update('auricle development').digest('hex'),
      'x-ms-sevsnpvm-reportdata': digest + '0'.repeat(64),
      'x-ms-runtime': { ...runtime },
    })
      .setProtectedHeader({ alg, typ: 'JWT', ...(jwk.kid !== undefined && { kid: jwk.kid }) })
      .setIssuer(settings.issuer)
      .setIssuedAt(seconds)
      .setNotBefore(seconds)
      .setExpirationTime(expires)
      .sign(await importJWK(jwk, alg));
    return { token, expires };
  },
  /** Azure's key release sidecar, which talks to the processor: `POST /attest/maa`. */
  azure: (settings) => async (runtime) => {
    const response = await fetch(new URL('/attest/maa', settings.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        maa_endpoint: settings.provider,
        runtime_data: Buffer.from(JSON.stringify(runtime)).toString('base64'),
      }),
      signal: AbortSignal.timeout(ATTESTATION_MS),
    });
    if (!response.ok) throw new Error(`attestation sidecar answered ${response.status}`);
    const { token } = z.object({ token: z.string().min(1) }).parse(await response.json());
    return { token, expires: z.number().parse(decodeJwt(token).exp) };
  },
};

export function createAttest(settings: Settings['attestation']): Attest {
  return settings.kind === 'azure' ? authorities.azure(settings) : authorities.development(settings);
}
