// Floor of this runtime for a proxy that knows its caller and encrypts both ways: no framework, checks,
// allowance, record or route. It looks the token up, reads and seals the body in one call each, reads and
// opens the answer in one call each, and returns its last words. One timer bounds the wait.
const tokens = new Map<string, string>();
const raw = new Uint8Array(32);
const nonce = new Uint8Array(12);
const additional = new Uint8Array(6);
const algorithm = { name: 'AES-GCM', iv: nonce, additionalData: additional };
let key: CryptoKey | undefined;

async function fetchFloor(request: Request, env: { UPSTREAM: string }): Promise<Response> {
  key ??= await crypto.subtle.importKey('raw', raw, 'AES-GCM', false, ['encrypt', 'decrypt']);
  const authorization = request.headers.get('authorization') ?? '';
  if (!tokens.has(authorization)) tokens.set(authorization, 'tenant');
  const late = setTimeout(() => {}, 5_000);
  const body = await request.arrayBuffer();
  const answer = await fetch(`${env.UPSTREAM}/v1/short`, {
    method: 'POST',
    headers: { 'content-type': 'application/auricle-sealed', 'bench-floor': 'yes' },
    body: await crypto.subtle.encrypt(algorithm, key, body),
    redirect: 'manual',
  });
  const opened = await crypto.subtle.decrypt(algorithm, key, await answer.arrayBuffer());
  clearTimeout(late);
  const { text } = JSON.parse(new TextDecoder().decode(opened)) as { text: string };
  return new Response(JSON.stringify({ text }), {
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-request-id': crypto.randomUUID(),
      'access-control-allow-origin': '*',
    },
  });
}

export const worker = { fetch: fetchFloor };
