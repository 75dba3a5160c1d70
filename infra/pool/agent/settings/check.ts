// Requirements on the settings of an agent as a whole, one row each. Values never appear in a problem.
import type { JSONWebKeySet } from 'jose';
import { isLoopback, keySetProblems, urlProblems } from '../../../../shared/settings/fit.ts';
import type { Rule } from '../../../../shared/settings/problem.ts';
import type { Environment } from './schema.ts';
import { speechServerProblems, speechServerRules } from './speech-server.ts';

type AgentRule = Rule<Environment>;

const missingIf = (missing: boolean): readonly string[] => (missing ? ['is missing'] : []);

/** A pool token comes from a file, or from an endpoint to which one credential is shown. */
const tokenRules: readonly AgentRule[] = [
  [
    'AURICLE_POOL_TOKEN_FILE',
    ({ AURICLE_POOL_TOKEN_FILE: file, AURICLE_TOKEN_URL: url }) =>
      file && url ? ['goes without AURICLE_TOKEN_URL'] : missingIf(!file && !url),
  ],
  ['AURICLE_TOKEN_CLIENT', (e) => missingIf(!!e.AURICLE_TOKEN_URL && !e.AURICLE_TOKEN_CLIENT)],
  [
    'AURICLE_TOKEN_SECRET_FILE',
    ({ AURICLE_TOKEN_URL: url, AURICLE_TOKEN_SECRET_FILE: secret, AURICLE_TOKEN_ASSERTION_FILE: assertion }) => {
      if (!url) return [];
      if (secret && assertion) return ['goes without AURICLE_TOKEN_ASSERTION_FILE'];
      return secret || assertion ? [] : ['is missing, and so is AURICLE_TOKEN_ASSERTION_FILE instead'];
    },
  ],
];

/** Rules of every mode: settings that go together. */
export const commonRules: readonly AgentRule[] = [
  ...speechServerRules,
  ...tokenRules,
  ['AURICLE_TLS_CERTIFICATE_FILE', (e) => missingIf(!e.AURICLE_TLS_CERTIFICATE_FILE && !!e.AURICLE_TLS_KEY_FILE)],
  ['AURICLE_TLS_KEY_FILE', (e) => missingIf(!!e.AURICLE_TLS_CERTIFICATE_FILE && !e.AURICLE_TLS_KEY_FILE)],
  [
    'AURICLE_RELEASE_URL',
    ({ AURICLE_RELEASE_URL, AURICLE_RELEASE_VAULT, AURICLE_ZONE_KEYS_FILE, AURICLE_FUNCTIONS_URL }) =>
      AURICLE_RELEASE_URL && AURICLE_RELEASE_VAULT
        ? ['goes without AURICLE_RELEASE_VAULT']
        : // Jobs are about sealed files, so they take the key of the zone.
          missingIf(
            !(AURICLE_RELEASE_URL ?? AURICLE_RELEASE_VAULT) && !!(AURICLE_ZONE_KEYS_FILE ?? AURICLE_FUNCTIONS_URL),
          ),
  ],
  [
    'AURICLE_ZONE_KEYS_FILE',
    ({ AURICLE_RELEASE_URL, AURICLE_RELEASE_VAULT, AURICLE_ZONE_KEYS_FILE }) =>
      missingIf(!!(AURICLE_RELEASE_URL ?? AURICLE_RELEASE_VAULT) && !AURICLE_ZONE_KEYS_FILE),
  ],
  // A vault believes an attestation provider only.
  [
    'AURICLE_ATTESTATION_URL',
    ({ AURICLE_ATTESTATION_URL, AURICLE_RELEASE_VAULT, AURICLE_MODE }) =>
      missingIf(!!AURICLE_RELEASE_VAULT && !AURICLE_ATTESTATION_URL && AURICLE_MODE === 'development'),
  ],
  ['SQS_REGION', ({ AURICLE_FUNCTIONS_URL, SQS_REGION }) => missingIf(!!AURICLE_FUNCTIONS_URL && !SQS_REGION)],
  [
    'AURICLE_ATTESTATION_URL',
    // A self-issued attestation proves nothing, so production never falls back to one.
    ({ AURICLE_MODE, AURICLE_ATTESTATION_URL, AURICLE_ATTESTATION_KEY_FILE }) => {
      if (AURICLE_ATTESTATION_URL) return [];
      if (AURICLE_MODE !== 'development') return ['is missing'];
      return AURICLE_ATTESTATION_KEY_FILE ? [] : ['is missing, and so is AURICLE_ATTESTATION_KEY_FILE instead'];
    },
  ],
];

/** A sidecar in the same pod is called over loopback; anything else is reached over TLS. */
function sidecarProblems(url: string | undefined): readonly string[] {
  if (url === undefined || isLoopback(new URL(url).hostname)) return [];
  return urlProblems(url);
}

export const productionRules: readonly AgentRule[] = [
  ...commonRules,
  ['AURICLE_ENDPOINT', ({ AURICLE_ENDPOINT: url }) => (url === undefined ? ['is missing'] : urlProblems(url))],
  // Audio is sealed to the agent itself, so TLS ends in the agent, too, and not in a gateway before it.
  ['AURICLE_TLS_CERTIFICATE_FILE', (e) => missingIf(!e.AURICLE_TLS_CERTIFICATE_FILE && !e.AURICLE_TLS_KEY_FILE)],
  ['AURICLE_EDGE_URL', ({ AURICLE_EDGE_URL }) => urlProblems(AURICLE_EDGE_URL)],
  ['AURICLE_TOKEN_URL', ({ AURICLE_TOKEN_URL }) => urlProblems(AURICLE_TOKEN_URL)],
  ['AURICLE_RELEASE_URL', ({ AURICLE_RELEASE_URL }) => urlProblems(AURICLE_RELEASE_URL)],
  ['AURICLE_FUNCTIONS_URL', ({ AURICLE_FUNCTIONS_URL }) => urlProblems(AURICLE_FUNCTIONS_URL)],
  ['SQS_ENDPOINT', ({ SQS_ENDPOINT }) => urlProblems(SQS_ENDPOINT)],
  // A collector beside the agent takes plain HTTP.
  ['OTEL_EXPORTER_OTLP_ENDPOINT', (e) => sidecarProblems(e.OTEL_EXPORTER_OTLP_ENDPOINT)],
  ['AURICLE_ATTESTATION_URL', ({ AURICLE_ATTESTATION_URL }) => sidecarProblems(AURICLE_ATTESTATION_URL)],
  [
    'AURICLE_SERVICE_KEYS',
    ({ AURICLE_SERVICE_KEYS: keys }) => (keys ? keySetProblems(keys as JSONWebKeySet) : ['is missing']),
  ],
  // An engine that serves a mounted folder serves what is swapped there until the agent notices.
  [
    'AURICLE_ENGINE_REPOSITORY',
    (e) => missingIf(e.AURICLE_ENGINE_REPOSITORY === undefined && e.AURICLE_ENGINE === undefined),
  ],
  // Unsigned models are served in development only. A speech server has files that the agent never sees.
  ['AURICLE_MODEL_SIGNERS', (e) => missingIf(e.AURICLE_MODEL_SIGNERS === undefined && e.AURICLE_ENGINE === undefined)],
  ['AURICLE_ENGINE', ({ AURICLE_ENGINE }) => speechServerProblems(AURICLE_ENGINE)],
];
