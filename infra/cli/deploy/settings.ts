// Settings of an environment, a row each: a value, or the reason for which only the operator can give one.
import { readFileSync } from 'node:fs';
import type { JWK } from 'jose';
import { type EnvironmentPlan, functionsUrl, type PoolPlan } from './environment.ts';
import { AUDIENCE, CHECK_SCOPES, CHECK_TENANT, type EnvironmentKeys, issuerOf } from './make-keys.ts';

export interface Row {
  readonly name: string;
  readonly value?: string;
  /** Why it is left to be filled. */
  readonly fill?: string;
  /** The environment works without it. */
  readonly isOptional?: true;
}

const row = (name: string, value: unknown): Row => ({
  name,
  value: typeof value === 'string' ? value : JSON.stringify(value),
});
const fill = (name: string, reason: string): Row => ({ name, fill: reason });
const option = (name: string, reason: string): Row => ({ name, fill: reason, isOptional: true });
const privateKey = ({ privateFile }: { privateFile: string }): Row['value'] => readFileSync(privateFile, 'utf8').trim();

const ATTESTATION = fill(
  'ATTESTATION',
  'SHA-256 of the container policy of your agent image: {"issuers":[{"profile":"azure-sevsnp",' +
    '"issuer":"https://sharedweu.weu.attest.azure.net","jwks":{"url":"https://sharedweu.weu.attest.azure.net/certs"},' +
    '"hostdata":["64 hex digits"]}]}',
);
const SIGNERS =
  'people who sign models make their own keys (`openssl ecparam -genkey -name prime256v1`): ' +
  '[{"name":"ann","key":"SPKI in base64"}], two at least';
const ZONE_KEYS = 'public halves of the zone keys in your vault, made with a release policy: agent README, "Zone keys"';
const SQS = 'region of infra/aws';

const TRACES = [
  option('OTEL_EXPORTER_OTLP_ENDPOINT', 'base address of a collector of traces'),
  option('OTEL_EXPORTER_OTLP_HEADERS', 'headers of its requests, a secret: name=value,name=value'),
];

const issuerRow = (plan: EnvironmentPlan, keys: EnvironmentKeys, of: 'pools' | 'check') => ({
  issuer: issuerOf(plan, of),
  audience: AUDIENCE,
  jwks: keys[of].jwks,
  algorithms: ['ES256'],
  types: ['at+jwt'],
  ...(of === 'pools' ? { scopes: ['pool'] } : { tenants: [CHECK_TENANT], scopes: [...CHECK_SCOPES] }),
});

const serviceKeys = ({ zones }: EnvironmentKeys): { keys: JWK[] } => ({
  keys: [...zones.values()].flatMap(({ service }) => service.jwks.keys),
});

const auditOrigin = ({ domain }: EnvironmentPlan): string => `${domain}/audit`;

/** Settings of the edge but MODE, which wrangler.jsonc has. */
export function edgeRows(plan: EnvironmentPlan, keys: EnvironmentKeys): Row[] {
  const byZone = (value: (zone: string) => unknown) =>
    Object.fromEntries(plan.zones.map((zone) => [zone, value(zone)]));
  return [
    // Tenants need a row of their identity provider beside these two.
    row('ISSUERS', [issuerRow(plan, keys, 'pools'), issuerRow(plan, keys, 'check')]),
    ATTESTATION,
    row('ZONES', plan.zones),
    row(
      'FUNCTIONS_URLS',
      byZone((zone) => functionsUrl(plan, zone)),
    ),
    row(
      'AUDIT_LOGS',
      byZone((zone) => ({ origin: auditOrigin(plan), key: keys.zones.get(zone)?.auditPublic })),
    ),
    row('SERVICE_KEYS', serviceKeys(keys)),
    row('TICKET_KEY', privateKey(keys.ticket)),
    row('GRANT_KEY', privateKey(keys.grant)),
    row('EDGE_KEY', privateKey(keys.edge)),
    option('AUDIT_WAIT_MS', '250 ms unless set'),
    option('LOG_REQUESTS', 'true logs a line per request'),
    ...TRACES,
    option('OTEL_TRACES_SAMPLER_ARG', '1 unless set: every request begins a trace'),
  ];
}

/** Settings of the functions of a zone that are no secrets. */
export function functionsRows(plan: EnvironmentPlan, keys: EnvironmentKeys, zone: string): Row[] {
  return [
    row('MODE', 'production'),
    row('ZONES', [zone]),
    row('EDGE_URL', `https://${plan.domain}`),
    row('EDGE_KEYS', keys.edge.jwks),
    row('ISSUERS', [issuerRow(plan, keys, 'pools')]),
    ATTESTATION,
    fill('ZONE_KEYS', ZONE_KEYS),
    fill('MODEL_SIGNERS', SIGNERS),
    fill('SQS_REGION', SQS),
    row('JOBS_QUEUE', 'jobs'),
    row('AUDIT_ORIGIN', auditOrigin(plan)),
    row('AUDIT_RETENTION', { default: 'standard' }),
    row('AUDIT_VERIFIER', 'verify'),
    option(
      'AUDIT_VAULT_KEY',
      'output auditKeyId of main.bicep: {"id":"…","publicKey":"…"}, infra/azure/audit/README.md',
    ),
    option('AUDIT_WITNESSES', 'lines of a C2SP tlog-policy; witnesses belong to other parties'),
    option('AUDIT_KEY_YEARS', 'public halves of the log keys by year, once there is a second'),
    option('MIRROR_SHARE', '0.1 unless set'),
  ];
}

/** Settings of the functions of a zone that go to the vault. Bicep sets storage. */
export function functionsSecretRows(keys: EnvironmentKeys, zone: string): Row[] {
  const own = keys.zones.get(zone);
  if (!own) throw new Error(`no keys of ${zone}`);
  return [
    row('SERVICE_KEY', privateKey(own.service)),
    row('WEBHOOK_KEY', own.webhook),
    row('AUDIT_KEY', own.audit),
    row('AUDIT_SIDECAR_KEY', own.sidecar),
    fill('AWS_ACCESS_KEY_ID', 'aws iam create-access-key --user-name ENV-functions (infra/aws/README.md)'),
    fill('AWS_SECRET_ACCESS_KEY', 'the same'),
  ];
}

/** Settings of an agent on one machine; the chart sets them from its values. Paths are those of the chart. */
export function agentRows(plan: EnvironmentPlan, keys: EnvironmentKeys, pool: PoolPlan): Row[] {
  const agent = `${pool.name}-0`;
  return [
    row('AURICLE_AGENT', agent),
    row('AURICLE_POOL', pool.name),
    row('AURICLE_ZONE', pool.zone),
    fill('AURICLE_REGION', 'region of the platform, for example westeurope'),
    row('AURICLE_MODE', 'production'),
    row('AURICLE_PORT', '8443'),
    row('AURICLE_ENDPOINT', `https://${agent}.pools.${plan.domain}`),
    row('AURICLE_TLS_CERTIFICATE_FILE', '/etc/auricle/tls/tls.crt'),
    row('AURICLE_TLS_KEY_FILE', '/etc/auricle/tls/tls.key'),
    row('AURICLE_ENGINE_URL', 'http://127.0.0.1:8000'),
    row('AURICLE_ENGINE_METRICS_URL', 'http://127.0.0.1:8002/metrics'),
    row('AURICLE_MODELS', '/models/mounted'),
    row('AURICLE_ENGINE_REPOSITORY', '/models/engine'),
    row('AURICLE_STATE_DIR', '/var/lib/auricle'),
    row('AURICLE_EDGE_URL', `https://${plan.domain}`),
    row('AURICLE_POOL_TOKEN_FILE', '/etc/auricle/token/token'),
    row('AURICLE_EDGE_KEYS_FILE', '/etc/auricle/trust/edge-keys.json'),
    row('AURICLE_SERVICE_KEYS', serviceKeys(keys)),
    fill('AURICLE_MODEL_SIGNERS', 'MODEL_SIGNERS of the functions'),
    row('AURICLE_ATTESTATION_URL', 'http://127.0.0.1:8080'),
    fill('AURICLE_RELEASE_VAULT', 'vault of the zone key: https://NAME.vault.azure.net'),
    row('AURICLE_ZONE_KEYS_FILE', '/etc/auricle/trust/zone-keys.json'),
    row('AURICLE_FUNCTIONS_URL', functionsUrl(plan, pool.zone)),
    row('AURICLE_JOBS_QUEUE', 'jobs'),
    fill('SQS_REGION', SQS),
    option('AURICLE_DEVICE', 'accelerator by its product name, for example h100'),
    option('AURICLE_PRICE', 'US dollars an hour of agent and engine, for routing'),
    option('AURICLE_LOCATION', 'degrees north and east, for example 52.37,4.90'),
  ];
}

/** Public keys that agents trust, by file of the folder `trust`. */
export const trustFiles = (keys: EnvironmentKeys): Readonly<Record<string, unknown>> => ({
  'edge-keys.json': keys.ticket.jwks,
  'service-keys.json': serviceKeys(keys),
});

/** Text of a settings file. Values are unquoted, as `docker --env-file`, kubectl and wrangler read them. */
export function formatRows(title: string, rows: readonly Row[]): string {
  const lines = rows.flatMap(({ name, value, fill: reason, isOptional }) => {
    if (value !== undefined) return [`${name}=${value}`];
    return isOptional ? [`# Optional: ${reason}`, `#${name}=`] : [`# FILL: ${reason}`, `${name}=`];
  });
  return `# ${title}\n${lines.join('\n')}\n`;
}

/** Names in a settings file that have no value yet, each with the comment above it. */
export function unfilled(text: string): { readonly name: string; readonly reason: string }[] {
  const lines = text.split(/\r?\n/);
  return lines.flatMap((line, at) => {
    const [, name] = /^([A-Za-z_]\w*)=\s*$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, reason: lines[at - 1]?.replace(/^# FILL: |^#.*/, '') || 'has no value' }];
  });
}
