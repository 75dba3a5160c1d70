// Production requirements on the edge's settings, one row each. Values never appear in a problem.
import {
  attestationKeys,
  distinct,
  equalKeys,
  keyIdentity,
  keySetProblems,
  signingKeyProblems,
  urlProblems,
} from '../shared/settings/fit.ts';
import type { Problem, Rule } from '../shared/settings/problem.ts';
import { issuerProblems } from '../shared/tenant/issuer.ts';
import type { EdgeValues } from './settings-schema.ts';

type EdgeRule = Rule<EdgeValues>;
type Values = Partial<EdgeValues>;

const unless = (held: unknown, problem: string): readonly string[] => (held ? [] : [problem]);

const unserved = (byZone: object | undefined, { ZONES = [] }: Values): readonly string[] =>
  byZone === undefined
    ? ['is missing']
    : ZONES.filter((zone) => !Object.hasOwn(byZone, zone)).map((zone) => `has no entry for the zone ${zone}`);

/** Rules of every mode. */
export const developmentRules: readonly EdgeRule[] = [
  [
    'EDGE_KEY',
    ({ EDGE_KEY, FUNCTIONS_URLS }) => unless(EDGE_KEY || !FUNCTIONS_URLS, 'is missing: FUNCTIONS_URLS needs it'),
  ],
];

export const productionRules: readonly EdgeRule[] = [
  ...developmentRules,
  ['ISSUERS', ({ ISSUERS = [] }) => issuerProblems(ISSUERS)],
  ['ISSUERS', ({ ISSUERS = [] }) => distinct(ISSUERS.flatMap(({ jwksUrl }) => urlProblems(jwksUrl)))],
  ['ISSUERS', ({ ISSUERS = [] }) => distinct(ISSUERS.flatMap(({ jwks }) => keySetProblems(jwks)))],
  ['ATTESTATION', ({ ATTESTATION }) => keySetProblems({ keys: attestationKeys(ATTESTATION) })],
  ['TICKET_KEY', ({ TICKET_KEY }) => signingKeyProblems(TICKET_KEY)],
  ['GRANT_KEY', ({ GRANT_KEY }) => signingKeyProblems(GRANT_KEY)],
  ['EDGE_KEY', ({ EDGE_KEY }) => signingKeyProblems(EDGE_KEY)],
  ['SERVICE_KEYS', ({ SERVICE_KEYS }) => (SERVICE_KEYS ? keySetProblems(SERVICE_KEYS) : ['is missing'])],
  ['FUNCTIONS_URLS', (values) => unserved(values.FUNCTIONS_URLS, values)],
  ['FUNCTIONS_URLS', ({ FUNCTIONS_URLS = {} }) => distinct(Object.values(FUNCTIONS_URLS).flatMap(urlProblems))],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', (values) => urlProblems(values.OTEL_EXPORTER_OTLP_ENDPOINT)],
  ['AUDIT_LOGS', (values) => unserved(values.AUDIT_LOGS, values)],
];

/** Returns settings that share a key: its holder for one purpose could act for the other. */
export const equalKeyProblems = (values: Values): readonly Problem[] => {
  const { TICKET_KEY, GRANT_KEY, EDGE_KEY, SERVICE_KEYS, ISSUERS = [], ATTESTATION } = values;
  const one = (key: EdgeValues['GRANT_KEY']) => (key ? [keyIdentity(key)] : []);
  return equalKeys([
    ['TICKET_KEY', one(TICKET_KEY)],
    ['GRANT_KEY', one(GRANT_KEY)],
    ['EDGE_KEY', one(EDGE_KEY)],
    ['SERVICE_KEYS', (SERVICE_KEYS?.keys ?? []).map(keyIdentity)],
    ['ISSUERS', ISSUERS.flatMap(({ jwks }) => (jwks?.keys ?? []).map(keyIdentity))],
    ['ATTESTATION', attestationKeys(ATTESTATION).map(keyIdentity)],
  ]);
};
