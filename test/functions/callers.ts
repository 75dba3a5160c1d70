// The edge and an agent, as the back office knows them: by their signatures.
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { EDGE_ISSUER, FUNCTIONS_AUDIENCE, OWNER_HEADER, PROOF_TYPE, SERVICE_TYPE } from '../../shared/callers.ts';
import { jobKey, type UploadJob } from '../../shared/jobs/job.ts';

const ISSUER = 'https://issuer.test';
const ATTESTER = 'https://attestation.test';

type Pair = { privateKey: CryptoKey; jwk: JWK };

async function pair(alg: 'ES256' | 'RS256', kid: string): Promise<Pair> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } };
}

export async function makeCallers() {
  const [edge, issuer, attester, sign, seal, zone] = await Promise.all(
    ['edge', 'issuer', 'attester', 'sign', 'seal', 'zone'].map((kid) => pair('ES256', kid)),
  );
  if (!edge || !issuer || !attester || !sign || !seal || !zone) throw new Error('no keys');
  const kid = 'k'.repeat(43);
  const { x, y } = zone.jwk as { x: string; y: string };
  const key = { kid, jwk: { kty: 'EC', crv: 'P-256', x, y } as const };
  const poolToken = (zoneName: string, scope = 'pool') =>
    new SignJWT({ scope, pool: 'pool-1', zone: zoneName })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'issuer' })
      .setIssuer(ISSUER)
      .setAudience('auricle')
      .setExpirationTime('1h')
      .sign(issuer.privateKey);
  const attestation = (agent: string) =>
    new SignJWT({
      'x-ms-runtime': {
        keys: [
          { ...bare(seal.jwk), use: 'enc' },
          { ...bare(sign.jwk), use: 'sig' },
        ],
        suites: [5],
        agent,
      },
    })
      .setProtectedHeader({ alg: 'ES256', kid: 'attester' })
      .setIssuer(ATTESTER)
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(attester.privateKey);
  return {
    settings: {
      ZONES: ['eu', 'us'],
      ZONE_KEYS: { eu: [key], us: [key] },
      EDGE_KEYS: { keys: [edge.jwk] },
      ISSUERS: [
        {
          issuer: ISSUER,
          audience: 'auricle',
          jwks: { keys: [issuer.jwk] },
          algorithms: ['ES256' as const],
          scopes: ['pool' as const],
          types: ['at+jwt' as const],
        },
      ],
      ATTESTATION: {
        issuers: [{ profile: 'development' as const, issuer: ATTESTER, jwks: { keys: [attester.jwk] } }],
        development: true,
      },
      WEBHOOK_KEY: btoa('0123456789abcdef0123456789abcdef'),
      MODE: 'development' as const,
    },
    edgeToken: (tenant: string, more: Record<string, unknown> = {}, typ = SERVICE_TYPE, life = 60) =>
      new SignJWT({ tenant, ...more })
        .setProtectedHeader({ alg: 'ES256', kid: 'edge', typ })
        .setIssuer(EDGE_ISSUER)
        .setAudience(FUNCTIONS_AUDIENCE)
        .setIssuedAt()
        .setExpirationTime(Math.floor(Date.now() / 1_000) + life)
        .sign(edge.privateKey),
    /** Signs a token of a caller restricted to one subject's uploads and projects. */
    ownerToken: (tenant: string, owner: string) =>
      new SignJWT({ tenant })
        .setProtectedHeader({
          alg: 'ES256',
          kid: 'edge',
          typ: SERVICE_TYPE,
          crit: [OWNER_HEADER],
          [OWNER_HEADER]: owner,
        })
        .setIssuer(EDGE_ISSUER)
        .setAudience(FUNCTIONS_AUDIENCE)
        .setIssuedAt()
        .setExpirationTime('1m')
        .sign(edge.privateKey, { crit: { [OWNER_HEADER]: true } }),
    poolToken,
    /** That an agent asks, and for what. */
    proofOf: async (job: string, agent = 'agent-1', as = agent, at = Date.now()) =>
      new SignJWT({ job, agent: as, attestation: await attestation(agent) })
        .setProtectedHeader({ alg: 'ES256', typ: PROOF_TYPE })
        .setIssuedAt(Math.floor(at / 1_000))
        .sign(sign.privateKey),
    /** Body of POST /api/jobs/open, and whose it is. */
    openBody: async (job: UploadJob, agent = 'agent-1', about: UploadJob = job, as = agent) => ({
      job,
      proof: await new SignJWT({ job: jobKey(about), agent: as, attestation: await attestation(agent) })
        .setProtectedHeader({ alg: 'ES256', typ: PROOF_TYPE })
        .setIssuedAt()
        .sign(sign.privateKey),
    }),
  };
}

export type Callers = Awaited<ReturnType<typeof makeCallers>>;

const bare = ({ kty, crv, x, y }: JWK): JWK => ({ kty, crv, x, y }) as JWK;
