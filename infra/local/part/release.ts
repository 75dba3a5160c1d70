// Release authority of the local stack, on the configured port.
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import process from 'node:process';
import type { JSONWebKeySet } from 'jose';
import { publicText } from '../../../shared/refusal.ts';
import { attestationPolicy } from '../../../shared/seal/attestation-policy.ts';
import { createAuthority, statusOf } from '../release/authority.ts';

/** An attestation, a proof and what JSON puts around them. */
const BODY_BYTES_MAX = 65_536;

const json = (name: string) => JSON.parse(process.env[name] ?? 'null');
const files = json('ZONE_KEY_FILES') as Record<string, string>;
const release = createAuthority({
  policy: attestationPolicy.parse(json('ATTESTATION')),
  issuer: json('ISSUER') as { issuer: string; audience: string; jwks: JSONWebKeySet },
  keys: Object.fromEntries(
    Object.entries(files).map(([zone, file]) => [zone, JSON.parse(readFileSync(file, 'utf8')).keys as JsonWebKey[]]),
  ),
  log: (line) => console.error(line),
});

const server = createServer(async (request, response) => {
  const answer = (status: number, body: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(JSON.stringify(body));
  };
  if (request.method !== 'POST' || request.url !== '/v1/release') return answer(404, {});
  const body = await readBody(request).catch(() => undefined);
  const released = await release(request.headers.authorization, body, Date.now());
  if (released.ok) return answer(200, released.value);
  const { refusal } = released;
  answer(statusOf(refusal), { error: { code: refusal.reason, message: publicText(refusal) } });
});

async function readBody(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > BODY_BYTES_MAX) throw new Error('too long');
  }
  return JSON.parse(text);
}

server.listen(Number(process.env.PORT), '127.0.0.1', () => process.send?.('ready'));
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeAllConnections();
});
