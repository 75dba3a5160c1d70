// A double of Azure Key Vault below its SDK: "Get Key", "Sign", and the challenge that names the resource of tokens.

import { createHttpHeaders, type PipelineRequest, type PipelineResponse, RestError } from '@azure/core-rest-pipeline';
import type { TokenCredential } from '@azure/identity';
import { p256 } from '@noble/curves/nist.js';
import type { VaultParts } from '../../functions/audit/log/vault-key.ts';
import { p256Spki } from '../../shared/audit/ecdsa.ts';

/** Replaces the next answer. */
export type Fault = { readonly status: number; readonly headers?: Record<string, string> } | 'cut' | 'hang' | 'forged';

export interface FakeVault {
  readonly id: string;
  readonly publicKey: Uint8Array;
  readonly parts: VaultParts;
  /** Authorised requests and tokens in order: `GET`, `sign`, `token RESOURCE`. */
  readonly requests: string[];
  readonly faults: Fault[];
  now: number;
  /** Fires the deadline of the request in flight. */
  fireDeadline(): void;
}

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');

export function openVault(host = 'marks.vault.azure.net'): FakeVault {
  const id = `https://${host}/keys/audit-log/78deebed173b48e48f55abf87ed4cf71`;
  const secret = p256.utils.randomSecretKey();
  const point = p256.getPublicKey(secret, false);
  const jwk = { x: base64url(point.subarray(1, 33)), y: base64url(point.subarray(33)) };
  const publicKey = p256Spki(jwk);
  if (!publicKey) throw new Error('no public key');
  const [requests, faults, deadlines]: [string[], Fault[], (() => void)[]] = [[], [], []];

  const answerOf = (request: PipelineRequest): { status: number; headers?: Record<string, string>; body?: object } => {
    const { pathname, origin } = new URL(request.url);
    if (!request.headers.get('authorization')) {
      const resource = `https://${host.split('.').slice(1).join('.')}`;
      const challenge = `Bearer authorization="https://login.example/tenant", resource="${resource}"`;
      return { status: 401, headers: { 'www-authenticate': challenge } };
    }
    const isSign = pathname.endsWith('/sign');
    requests.push(isSign ? 'sign' : 'GET');
    const fault = faults.shift();
    if (fault === 'cut') throw new RestError('the connection was cut', { code: 'ECONNRESET' });
    if (typeof fault === 'object') return fault;
    if (`${origin}${pathname.replace(/\/sign$/, '')}` !== id) return { status: 404 };
    if (!isSign)
      return { status: 200, body: { key: { kid: id, kty: 'EC-HSM', crv: 'P-256', key_ops: ['sign'], ...jwk } } };
    const { alg, value } = JSON.parse(String(request.body)) as { alg: string; value: string };
    if (alg !== 'ES256') return { status: 400 };
    const options = { prehash: false, lowS: false };
    const signature =
      fault === 'forged' ? Buffer.alloc(64, 7) : p256.sign(Buffer.from(value, 'base64url'), secret, options);
    return { status: 200, body: { kid: id, value: base64url(signature) } };
  };
  const sendRequest = async (request: PipelineRequest): Promise<PipelineResponse> => {
    if (faults[0] === 'hang' && request.headers.get('authorization')) {
      requests.push('sign');
      faults.shift();
      return new Promise(() => {});
    }
    const { status, headers, body = {} } = answerOf(request);
    const sent = createHttpHeaders({ 'content-type': 'application/json', ...headers });
    return { request, status, headers: sent, bodyAsText: JSON.stringify(body) };
  };
  const credential: TokenCredential = {
    async getToken(scopes) {
      requests.push(`token ${scopes}`);
      return { token: 'token', expiresOnTimestamp: Date.now() + 3_600_000 };
    },
  };
  const double: FakeVault = {
    ...{ id, publicKey, requests, faults, now: 1_760_000_000_000 },
    parts: {
      credential,
      options: { httpClient: { sendRequest }, retryOptions: { maxRetries: 2, retryDelayInMs: 1 } },
      now: () => double.now,
      after: () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        deadlines.push(resolve);
        return { elapsed: promise, cancel: () => void deadlines.splice(deadlines.indexOf(resolve), 1) };
      },
    },
    fireDeadline: () => {
      for (const fire of deadlines.splice(0)) fire();
    },
  };
  return double;
}
