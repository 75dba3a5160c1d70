import { randomBytes } from 'node:crypto';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { readSettings } from '../../functions/settings.ts';
import { type IdentityAccount, storageAccountOf } from '../../functions/store/account.ts';

const enough = { STORAGE_CONNECTION: 'UseDevelopmentStorage=true', SQS_REGION: 'eu-west-1', MODE: 'development' };

it('opens nothing by default: without keys no caller and no self-issued token', () => {
  const defaults = { JOBS_QUEUE: 'jobs', ZONES: ['eu', 'us'], ZONE_KEYS: {} };
  expect(readSettings(enough)).toEqual({ ...enough, ...defaults });
});

it('names what is missing and shows no value', () => {
  expect(() => readSettings({ STORAGE_CONNECTION: 'x' })).toThrow(/SQS_REGION/);
  expect(() => readSettings({ ...enough, EDGE_KEYS: 'a secret' })).toThrow(/^(?!.*secret).*EDGE_KEYS/);
  expect(() => readSettings({ ...enough, SQS_ENDPOINT: 'secret in the wrong place' })).toThrow(
    /^(?!.*secret).*SQS_ENDPOINT/,
  );
});

describe('C4 A21 settings of production functions', () => {
  let whole: Record<string, string>;
  let service: JWK;
  let edge: JWK;

  const publicHalf = ({ d: _, ...key }: JWK) => key;
  const set = (...keys: JWK[]) => JSON.stringify({ keys: keys.map(publicHalf) });
  const secret = () => randomBytes(32).toString('base64');
  const issuers = (key: JWK, scopes?: string[]) =>
    JSON.stringify([{ issuer: 'https://idp.test', audience: 'auricle', jwks: JSON.parse(set(key)), scopes }]);

  beforeAll(async () => {
    const make = async (kid: string): Promise<JWK> => {
      const { privateKey } = await generateKeyPair('ES256', { extractable: true });
      return { ...(await exportJWK(privateKey)), kid };
    };
    const [issuer, attester, zone] = [await make('issuer'), await make('attester'), await make('zone')];
    service = await make('service');
    edge = await make('edge');
    const { kty, crv, x, y } = zone;
    const zoneKey = { kid: 'k'.repeat(43), jwk: { kty, crv, x, y } };
    whole = {
      STORAGE_CONNECTION: `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=${secret()};EndpointSuffix=core.windows.net`,
      SQS_REGION: 'eu-west-1',
      ZONE_KEYS: JSON.stringify({ eu: [zoneKey], us: [zoneKey] }),
      EDGE_KEYS: set(edge),
      ISSUERS: issuers(issuer, ['pool']),
      ATTESTATION: JSON.stringify({
        issuers: [{ profile: 'azure-sevsnp', issuer: 'https://attest.test', jwks: JSON.parse(set(attester)) }],
      }),
      EDGE_URL: 'https://edge.test',
      SERVICE_KEY: JSON.stringify(service),
      WEBHOOK_KEY: secret(),
      AUDIT_ORIGIN: 'audit.test',
      AUDIT_KEY: secret(),
      AUDIT_SIDECAR_KEY: secret(),
      AUDIT_WITNESSES: 'witness w witness.test+00000000+AAAA https://witness.test\nquorum w\n',
    };
  });

  it('start where they are whole, and believe nothing self-issued', () => {
    const policy = { ...JSON.parse(whole.ATTESTATION ?? ''), development: true };
    const read = readSettings({ ...whole, ATTESTATION: JSON.stringify(policy) });
    expect([read.MODE, read.ATTESTATION?.development]).toEqual(['production', false]);
    const local = readSettings({ ...whole, ATTESTATION: JSON.stringify(policy), MODE: 'development' });
    expect(local.ATTESTATION?.development).toBe(true);
  });

  const byIdentity = {
    STORAGE_CONNECTION: undefined,
    STORAGE_CONNECTION__blobServiceUri: 'https://a.blob.core.windows.net',
    STORAGE_CONNECTION__queueServiceUri: 'https://a.queue.core.windows.net',
    STORAGE_CONNECTION__tableServiceUri: 'https://a.table.core.windows.net',
  };

  it('T7 name storage by its addresses in place of its key', () => {
    const { credential, ...addresses } = storageAccountOf(readSettings({ ...whole, ...byIdentity })) as IdentityAccount;
    expect(addresses).toEqual({
      blobs: byIdentity.STORAGE_CONNECTION__blobServiceUri,
      queues: byIdentity.STORAGE_CONNECTION__queueServiceUri,
      tables: byIdentity.STORAGE_CONNECTION__tableServiceUri,
    });
    expect(storageAccountOf(readSettings(whole))).toBe(whole.STORAGE_CONNECTION);
  });

  it.each<[string, () => Record<string, string | undefined>, string]>([
    ['no storage', () => ({ STORAGE_CONNECTION: undefined }), 'STORAGE_CONNECTION is missing'],
    [
      'half of the addresses',
      () => ({ ...byIdentity, STORAGE_CONNECTION__tableServiceUri: undefined }),
      'STORAGE_CONNECTION__tableServiceUri is missing',
    ],
    [
      'a key beside addresses',
      () => ({ ...byIdentity, STORAGE_CONNECTION: whole.STORAGE_CONNECTION }),
      'STORAGE_CONNECTION goes without addresses',
    ],
    [
      'plain addresses',
      () => ({ ...byIdentity, STORAGE_CONNECTION__blobServiceUri: 'http://a.blob.core.windows.net' }),
      'STORAGE_CONNECTION__blobServiceUri must be https',
    ],
    [
      'a plain key set',
      () => ({
        ISSUERS: JSON.stringify([
          { ...JSON.parse(whole.ISSUERS ?? '')[0], jwks: undefined, jwksUrl: 'http://idp.test' },
        ]),
      }),
      'ISSUERS must be https',
    ],
    ['no audit log', () => ({ AUDIT_KEY: undefined }), 'AUDIT_KEY is missing'],
    ['no sidecar', () => ({ AUDIT_SIDECAR_KEY: undefined }), 'AUDIT_SIDECAR_KEY is missing'],
    ['no service key', () => ({ SERVICE_KEY: undefined }), 'SERVICE_KEY is missing'],
    ['no edge keys', () => ({ EDGE_KEYS: undefined }), 'EDGE_KEYS is missing'],
    ['a plain edge', () => ({ EDGE_URL: 'http://edge.test' }), 'EDGE_URL must be https'],
    ['a local queue', () => ({ SQS_ENDPOINT: 'http://127.0.0.1:9' }), 'SQS_ENDPOINT must not name this machine'],
    [
      'a plain witness',
      () => ({ AUDIT_WITNESSES: whole.AUDIT_WITNESSES?.replace('https', 'http') }),
      'AUDIT_WITNESSES must be https',
    ],
    ['the emulator', () => ({ STORAGE_CONNECTION: 'UseDevelopmentStorage=true' }), 'STORAGE_CONNECTION names the dev'],
    [
      'the host on this machine',
      () => ({ AzureWebJobsStorage: 'BlobEndpoint=https://127.0.0.1:10000/a;AccountName=a' }),
      'AzureWebJobsStorage must not name this machine',
    ],
    [
      'storage over plain HTTP',
      () => ({ STORAGE_CONNECTION: whole.STORAGE_CONNECTION?.replace('https', 'http') }),
      'STORAGE_CONNECTION must be https',
    ],
    ['an unserved zone', () => ({ ZONES: '["eu","ap"]' }), 'ZONE_KEYS has no key of the zone ap'],
    ['no pool issuer', () => ({ ISSUERS: issuers(edge) }), 'ISSUERS has no entry with the scope pool'],
    ['a short secret', () => ({ AUDIT_KEY: `${'A'.repeat(43)}=` }), 'AUDIT_KEY is not random'],
    ['equal secrets', () => ({ WEBHOOK_KEY: whole.AUDIT_KEY }), 'WEBHOOK_KEY has a key of AUDIT_KEY'],
    ['its own key for the edge', () => ({ EDGE_KEYS: set(service) }), 'EDGE_KEYS has a key of SERVICE_KEY'],
    [
      'its own key for checkpoints',
      () => ({ AUDIT_P256_KEY: JSON.stringify(service) }),
      'AUDIT_P256_KEY has a key of SERVICE_KEY',
    ],
  ])('do not start with %s', (_, change, problem) => {
    expect(() => readSettings({ ...whole, ...change() })).toThrow(problem);
  });

  it('name everything at once', () => {
    const read = () => readSettings({ ...whole, AUDIT_KEY: undefined, EDGE_URL: 'ftp://x', ZONES: '["ap"]' });
    expect(read).toThrow(/EDGE_URL is wrong.*AUDIT_KEY is missing.*ZONE_KEYS has no key of the zone ap/);
  });
});
