// What behaves as Azure Key Vault and as the place where Azure Functions gives tokens, over HTTP: the parts of both that
// sign a checkpoint (REST 7.4 "Get Key" and "Sign - Sign"; App Service managed identities, 2019-08-01).
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { VaultParts } from '../../../functions/audit/log/ask-vault.ts';
import { p256Spki } from '../../../shared/audit/ecdsa.ts';
import { signDigest } from './sign-digest.ts';

const CURVE = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const base64url = (bytes: ArrayBuffer | Uint8Array) => Buffer.from(bytes as Uint8Array).toString('base64url');
export const HEADER = '853b9a84-5bfa-4b22-a3f3-0b9a43d9ad8a';
export const ENDPOINT = 'http://localhost:42356/msi/token';

/** What the next question is answered with instead of what it asks for. */
export type Fault = { readonly status: number; readonly headers?: Record<string, string> } | 'cut' | 'hang' | 'forged';

export interface VaultDouble {
  /** What settings say of it. */
  readonly id: string;
  readonly publicKey: Uint8Array;
  readonly parts: VaultParts;
  /** Questions that came: `GET`, `sign`, `token`. */
  readonly asked: string[];
  readonly pauses: number[];
  readonly faults: Fault[];
  /** Token that it takes; those that are given are `token-N`. */
  valid: (token: string) => boolean;
  now: number;
  /** Rings the bell of whoever waits for an answer now. */
  ringLate(): void;
  stop(): Promise<void>;
}

export async function startVault(host = 'marks.vault.azure.net', lateMs = 2_500): Promise<VaultDouble> {
  const [version, name] = ['78deebed173b48e48f55abf87ed4cf71', 'audit-log'];
  const id = `https://${host}/keys/${name}/${version}`;
  const pair = await crypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const jwk = (await crypto.subtle.exportKey('jwk', pair.publicKey)) as JsonWebKey;
  const { d = '' } = (await crypto.subtle.exportKey('jwk', pair.privateKey)) as JsonWebKey;
  const [asked, pauses, faults, bells]: [string[], number[], Fault[], (() => void)[]] = [[], [], [], []];
  let given = 0;
  const send = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) =>
    void response
      .writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
      .end(JSON.stringify(body));
  const fail = (response: ServerResponse, status: number, headers?: Record<string, string>) =>
    send(response, status, { error: { code: 'Failed', message: `no: ${status}` } }, headers);

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    if (url.pathname === '/msi/token') {
      asked.push('token');
      const right =
        url.searchParams.get('api-version') === '2019-08-01' && request.headers['x-identity-header'] === HEADER;
      const resource = url.searchParams.get('resource');
      if (!right || resource !== `https://${host.split('.').slice(1).join('.')}`) return fail(response, 400);
      given += 1;
      const expires_on = String(Math.floor(double.now / 1_000) + 3_600);
      return send(response, 200, { access_token: `token-${given}`, expires_on, resource, token_type: 'Bearer' });
    }
    const signs = url.pathname.endsWith('/sign');
    asked.push(signs ? 'sign' : 'GET');
    const fault = faults.shift();
    if (fault === 'hang') return;
    if (fault === 'cut') return void request.socket.destroy();
    if (fault !== undefined && fault !== 'forged') return fail(response, fault.status, fault.headers);
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (!double.valid(token))
      return fail(response, 401, { 'www-authenticate': 'Bearer authorization="https://login"' });
    if (url.searchParams.get('api-version') !== '7.4') return fail(response, 400);
    if (url.pathname !== `/keys/${name}/${version}${signs ? '/sign' : ''}`) return fail(response, 404);
    const { x, y } = jwk;
    if (!signs)
      return send(response, 200, {
        key: { kid: id, kty: 'EC-HSM', key_ops: ['sign'], crv: 'P-256', x, y },
        attributes: { enabled: true },
      });
    let text = '';
    for await (const piece of request) text += String(piece);
    const { alg, value } = JSON.parse(text) as { alg: string; value: string };
    const digest = Buffer.from(value, 'base64url');
    if (request.method !== 'POST' || alg !== 'ES256' || digest.length !== 32) return fail(response, 400);
    const signature = fault === 'forged' ? Buffer.alloc(64, 7) : signDigest(Buffer.from(d, 'base64url'), digest);
    return send(response, 200, { kid: id, value: base64url(signature) });
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const { port } = server.address() as AddressInfo;
  const publicKey = p256Spki(jwk);
  if (!publicKey) throw new Error('no public key');
  const double: VaultDouble = {
    ...{ id, publicKey, asked, pauses, faults, valid: () => true, now: 1_760_000_000_000 },
    parts: {
      send: (url, init) => {
        const { pathname, search, origin } = new URL(url);
        if (![`https://${host}`, new URL(ENDPOINT).origin].includes(origin)) throw new TypeError(`asks ${origin}`);
        return fetch(`http://127.0.0.1:${port}${pathname}${search}`, init);
      },
      now: () => double.now,
      after(ms) {
        if (ms !== lateMs) {
          pauses.push(ms);
          return { rings: Promise.resolve(), cancel() {} };
        }
        let ring = () => {};
        const rings = new Promise<void>((settle) => {
          ring = settle;
        });
        bells.push(ring);
        return { rings, cancel: () => void bells.splice(bells.indexOf(ring), 1) };
      },
    },
    ringLate: () => {
      for (const ring of bells.splice(0)) ring();
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((settle) => server.close(settle));
    },
  };
  return double;
}
