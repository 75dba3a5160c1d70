// Production requirements on the functions' settings, one row each. Values never appear in a problem.
import { createPrivateKey } from 'node:crypto';
import type { JWK } from 'jose';
import {
  attestationKeys,
  distinct,
  equalKeys,
  keyIdentity,
  keySetProblems,
  secretProblems,
  signingKeyProblems,
  storageProblems,
  urlProblems,
} from '../shared/settings/fit.ts';
import type { Problem, Rule } from '../shared/settings/problem.ts';
import { issuerProblems } from '../shared/tenant/issuer.ts';
import type { Settings } from './settings-schema.ts';

/** The setting of the functions host that names its own storage account. The platform reads it, the functions check it. */
export const HOST_STORAGE = 'AzureWebJobsStorage';

type Values = Partial<Settings> & { readonly [HOST_STORAGE]?: string | undefined };
type FunctionsRule = Rule<Values>;

/** Settings without which the functions keep no record, trust no caller, or send the edge nothing. */
const needed = [
  ...['EDGE_KEYS', 'ISSUERS', 'ATTESTATION', 'EDGE_URL', 'SERVICE_KEY'],
  ...['AUDIT_ORIGIN', 'AUDIT_KEY', 'AUDIT_SIDECAR_KEY'],
] as const;

const missing = needed.map(
  (name): FunctionsRule => [name, (values) => (values[name as keyof Values] === undefined ? ['is missing'] : [])],
);

/** Addresses of the storage account, for the identity of the app. */
const storageAddresses = [
  'STORAGE_CONNECTION__blobServiceUri',
  'STORAGE_CONNECTION__queueServiceUri',
  'STORAGE_CONNECTION__tableServiceUri',
] as const;

/** Rules of every mode: the account's connection string, or all of its addresses. */
export const commonRules: readonly FunctionsRule[] = [
  [
    'STORAGE_CONNECTION',
    (values) => {
      const named = storageAddresses.some((name) => values[name] !== undefined);
      if (values.STORAGE_CONNECTION === undefined) return named ? [] : ['is missing'];
      return named ? ['goes without addresses of services, such as STORAGE_CONNECTION__blobServiceUri'] : [];
    },
  ],
  ...storageAddresses.map((name): FunctionsRule => {
    const isNamed = (values: Values) => storageAddresses.some((one) => values[one] !== undefined);
    return [name, (values) => (isNamed(values) && values[name] === undefined ? ['is missing'] : [])];
  }),
];

const sidecarKeys = ({ AUDIT_SIDECAR_KEY }: Values): readonly string[] => AUDIT_SIDECAR_KEY?.split(',') ?? [];

export const productionRules: readonly FunctionsRule[] = [
  ...missing,
  ...commonRules,
  ...storageAddresses.map((name): FunctionsRule => [name, (values) => urlProblems(values[name])]),
  ['STORAGE_CONNECTION', ({ STORAGE_CONNECTION }) => storageProblems(STORAGE_CONNECTION)],
  [HOST_STORAGE, (values) => storageProblems(values[HOST_STORAGE])],
  ['SQS_ENDPOINT', ({ SQS_ENDPOINT }) => urlProblems(SQS_ENDPOINT)],
  ['EDGE_URL', ({ EDGE_URL }) => urlProblems(EDGE_URL)],
  ['AUDIT_WITNESSES', ({ AUDIT_WITNESSES }) => witnessProblems(AUDIT_WITNESSES)],
  ['ZONE_KEYS', unservedZones],
  ['ISSUERS', ({ ISSUERS }) => (ISSUERS ? issuerProblems(ISSUERS) : [])],
  ['ISSUERS', ({ ISSUERS = [] }) => distinct(ISSUERS.flatMap(({ jwksUrl }) => urlProblems(jwksUrl)))],
  ['ISSUERS', ({ ISSUERS = [] }) => distinct(ISSUERS.flatMap(({ jwks }) => keySetProblems(jwks)))],
  ['ATTESTATION', ({ ATTESTATION }) => keySetProblems({ keys: attestationKeys(ATTESTATION) })],
  ['EDGE_KEYS', ({ EDGE_KEYS }) => keySetProblems(EDGE_KEYS)],
  ['SERVICE_KEY', ({ SERVICE_KEY }) => signingKeyProblems(SERVICE_KEY)],
  ['WEBHOOK_KEY', ({ WEBHOOK_KEY }) => secretProblems(WEBHOOK_KEY)],
  ['AUDIT_KEY', ({ AUDIT_KEY }) => secretProblems(AUDIT_KEY)],
  ['AUDIT_NEXT_KEY', ({ AUDIT_NEXT_KEY }) => secretProblems(AUDIT_NEXT_KEY)],
  ['AUDIT_SIDECAR_KEY', (values) => distinct(sidecarKeys(values).flatMap(secretProblems))],
];

/** Returns settings that share a key: its holder for one purpose could act for the other. */
export function equalKeyProblems(values: Values): readonly Problem[] {
  const { SERVICE_KEY, EDGE_KEYS, ISSUERS = [], ZONE_KEYS = {}, WEBHOOK_KEY, AUDIT_KEY, AUDIT_NEXT_KEY } = values;
  const some = (secret: string | undefined) => (secret === undefined ? [] : [secret]);
  return equalKeys([
    ['SERVICE_KEY', SERVICE_KEY ? [keyIdentity(SERVICE_KEY)] : []],
    ['EDGE_KEYS', (EDGE_KEYS?.keys ?? []).map(keyIdentity)],
    ['ISSUERS', ISSUERS.flatMap(({ jwks }) => (jwks?.keys ?? []).map(keyIdentity))],
    ['ATTESTATION', attestationKeys(values.ATTESTATION).map(keyIdentity)],
    ['ZONE_KEYS', Object.values(ZONE_KEYS).flatMap((keys) => keys.map(({ jwk }) => keyIdentity(jwk)))],
    ['AUDIT_P256_KEY', p256Identities(values)],
    ['AUDIT_KEY', some(AUDIT_KEY)],
    ['AUDIT_NEXT_KEY', some(AUDIT_NEXT_KEY)],
    ['AUDIT_SIDECAR_KEY', sidecarKeys(values)],
    ['WEBHOOK_KEY', some(WEBHOOK_KEY)],
  ]);
}

/**
 * Returns the identity of the key, PKCS #8 or JWK; none for an unreadable one, which the log reports on
 * opening.
 */
function p256Identities({ AUDIT_P256_KEY }: Values): readonly string[] {
  if (AUDIT_P256_KEY === undefined) return [];
  try {
    if (AUDIT_P256_KEY.trimStart().startsWith('{')) return [keyIdentity(JSON.parse(AUDIT_P256_KEY) as JWK)];
    const key = createPrivateKey({ key: Buffer.from(AUDIT_P256_KEY, 'base64'), format: 'der', type: 'pkcs8' });
    return [keyIdentity(key.export({ format: 'jwk' }) as JWK)];
  } catch {
    return [];
  }
}

function unservedZones({ ZONES = [], ZONE_KEYS = {} }: Values): readonly string[] {
  return ZONES.filter((zone) => !Object.hasOwn(ZONE_KEYS, zone)).map((zone) => `has no key of the zone ${zone}`);
}

/** Addresses of `witness` lines (C2SP tlog-policy); the line is judged where it is used. */
const witnessProblems = (policy = ''): readonly string[] =>
  distinct((policy.match(/https?:\/\/\S+/g) ?? []).filter((url) => URL.canParse(url)).flatMap(urlProblems));
