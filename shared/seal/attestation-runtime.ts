import { z } from 'zod';

const coordinate = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** A public P-256 key. Strict about `d`: a token that carries a private key has given it away. */
const publicKey = z.looseObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: coordinate,
  y: coordinate,
  use: z.enum(['enc', 'sig']),
  d: z.never().optional(),
});

/** Runtime data that the authority binds to the measurement. */
const runtime = z.object({
  keys: z.array(z.unknown()).max(8),
  suites: z.array(z.number().int()).min(1).max(16),
  agent: z.string().min(1).max(63),
});

export interface AttestedKeys {
  /** P-256, `use: "enc"`: audio is sealed to it. */
  readonly sealKey: JsonWebKey;
  /** P-256, `use: "sig"`: heartbeats are signed with it. */
  readonly signKey: JsonWebKey;
  readonly suites: number[];
  /** The agent's own name; a roster entry of another name must not use these keys. */
  readonly agent: string;
}

/** The keys in the runtime data of a verified token, or what is wrong with it. Both keys are points of the curve. */
export async function readRuntime(raw: unknown): Promise<AttestedKeys | string> {
  const parsed = runtime.safeParse(raw);
  if (!parsed.success) return 'x-ms-runtime';
  const { suites, agent } = parsed.data;
  const keys = parsed.data.keys.map((key) => publicKey.safeParse(key).data).filter((key) => key !== undefined);
  const sealKeys = keys.filter((key) => key.use === 'enc');
  const signKeys = keys.filter((key) => key.use === 'sig');
  const [sealKey, signKey] = [sealKeys[0], signKeys[0]];
  if (!sealKey || sealKeys.length !== 1) return 'x-ms-runtime: not one key for sealing';
  if (!signKey || signKeys.length !== 1) return 'x-ms-runtime: not one key for signing';
  const [seal, sign] = [bare(sealKey), bare(signKey)];
  if (!(await isPoint(seal, 'ECDH', [])) || !(await isPoint(sign, 'ECDSA', ['verify'])))
    return 'x-ms-runtime: a key is not valid';
  return { sealKey: { ...seal, use: 'enc' }, signKey: { ...sign, use: 'sig' }, suites, agent };
}

/** Without members that WebCrypto would hold against the key, such as `alg` or `key_ops` of another purpose. */
const bare = ({ kty, crv, x, y }: z.infer<typeof publicKey>): JsonWebKey => ({ kty, crv, x, y });

async function isPoint(key: JsonWebKey, name: string, usages: KeyUsage[]): Promise<boolean> {
  try {
    await crypto.subtle.importKey('jwk', key, { name, namedCurve: 'P-256' }, true, usages);
    return true;
  } catch {
    return false;
  }
}
