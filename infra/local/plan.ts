// Plan of the local stack: its parts, ports and environments. Pure; starts nothing.
import path from 'node:path';
import { scopes } from '../../shared/tenant/claims.ts';
import type { Installed } from '../pool/triton/install.ts';
import { AUDIT_ORIGIN, WITNESS_NAME } from './identity/audit-keys.ts';
import { ATTESTATION_ISSUER, type Identity } from './identity/make.ts';
import { AUDIENCE, ISSUER } from './identity/tokens.ts';
import type { LocalWorker } from './part/edge.ts';
import type { Part } from './part.ts';
import type { Pool } from './pools.ts';
import { HOST } from './ports.ts';

const zonesOf = (chosen: readonly Pool[]): string[] => [...new Set(chosen.map((pool) => pool.zone))];

/** Returns the names of the ports that the parts listen on; each gets one number for the whole run. */
export const portNamesOf = (chosen: readonly Pool[]): string[] => [
  'blob',
  'queue',
  'table',
  'sqs',
  'functions',
  'release',
  'witness',
  ...chosen.flatMap((pool) => [`engine-${pool.name}`, `metrics-${pool.name}`, `agent-${pool.name}`]),
];

export type Ports = Record<string, number>;

/** The account and key that every copy of the storage emulator has; public, and no secret. */
const STORAGE_ACCOUNT = 'devstoreaccount1';
const STORAGE_KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
/** Models that engines load and agents describe. */
const MODELS = 'infra/pool/models/repository';
const SQS_REGION = 'us-east-1';
/**
 * Readiness bound of Triton, ms: two of them load their models at once, one process a model, on two busy
 * cores.
 */
const TRITON_READY_MS_MAX = 180_000;

/** Engine of the pools: the embedded one, or a real Triton in each. */
export const engines = ['embedded', 'triton'] as const;
export type EngineName = (typeof engines)[number];

export function storageConnection(ports: Ports): string {
  const at = (name: string) => `http://${HOST}:${ports[name]}/${STORAGE_ACCOUNT}`;
  return (
    `DefaultEndpointsProtocol=http;AccountName=${STORAGE_ACCOUNT};AccountKey=${STORAGE_KEY};` +
    `BlobEndpoint=${at('blob')};QueueEndpoint=${at('queue')};TableEndpoint=${at('table')};`
  );
}

export type Variables = Readonly<Record<string, string>>;

export interface PartsPlan {
  readonly state: string;
  readonly edgePort: number;
  /** The edge listens on every address of the machine. */
  readonly open?: boolean | undefined;
  readonly ports: Ports;
  readonly identity: Identity;
  readonly pools: readonly Pool[];
  readonly triton?: Installed | undefined;
  /** Variables `OTEL_…` for edge and agents. */
  readonly collector?: Variables | undefined;
}

/** Plans the parts. With `triton` the engines are Tritons of that installation, otherwise embedded ones. */
export function planParts(plan: PartsPlan): Part[] {
  const { state, edgePort, ports, identity, pools, triton } = plan;
  const edgeUrl = `http://${HOST}:${edgePort}`;
  const sqs = {
    SQS_ENDPOINT: `http://${HOST}:${ports.sqs}`,
    SQS_REGION,
    // The local server checks no signature, but the client library must sign.
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
  };
  return [
    ...planStores(plan),
    planFunctions(plan, edgeUrl, sqs),
    planRelease(ports, identity),
    ...pools.flatMap((pool) => {
      const agent = planAgent(pool, plan, edgeUrl, sqs);
      return triton
        ? [planTriton(state, pool, ports, triton), onTriton(agent, pool)]
        : [planEngine(pool, state, ports), withLoader(agent, pool, state)];
    }),
    planEdge(plan),
  ];
}

function planStores({ state, ports, pools }: PartsPlan): Part[] {
  const port = (name: string) => String(ports[name]);
  return [
    {
      name: 'blob',
      entry: 'infra/local/part/blob.ts',
      env: {
        DATA: path.join(state, 'blob'),
        BLOB_PORT: port('blob'),
        QUEUE_PORT: port('queue'),
        TABLE_PORT: port('table'),
      },
      after: [],
      ready: 'message',
      stopTurn: 4,
    },
    {
      name: 'sqs',
      entry: 'infra/local/part/sqs.ts',
      env: {
        DATA: path.join(state, 'sqs'),
        PORT: port('sqs'),
        REGION: SQS_REGION,
        ZONES: JSON.stringify(zonesOf(pools)),
      },
      after: [],
      ready: 'message',
      stopTurn: 4,
    },
  ];
}

function planFunctions({ ports, identity, pools }: PartsPlan, edgeUrl: string, sqs: Variables): Part {
  const storage = storageConnection(ports);
  return {
    name: 'functions',
    entry: 'infra/local/part/functions.ts',
    env: {
      PORT: String(ports.functions),
      AzureWebJobsStorage: storage,
      STORAGE_CONNECTION: storage,
      ...sqs,
      ZONES: JSON.stringify(zonesOf(pools)),
      ZONE_KEYS: JSON.stringify(identity.zoneKeys.publicKeys),
      EDGE_KEYS: JSON.stringify(identity.edge.jwks),
      ISSUERS: JSON.stringify([poolIssuer(identity)]),
      ATTESTATION: JSON.stringify(attestation(identity)),
      WEBHOOK_KEY_FILE: identity.webhookKeyFile,
      AUDIT_ORIGIN,
      AUDIT_KEY_FILE: identity.audit.keyFile,
      AUDIT_P256_KEY_FILE: identity.audit.p256KeyFile,
      AUDIT_WITNESSES: `witness local ${identity.audit.witnessKey} http://${HOST}:${ports.witness}\nquorum local\n`,
      AUDIT_SIDECAR_KEY_FILE: identity.audit.sidecarKeyFile,
      EDGE_URL: edgeUrl,
      SERVICE_KEY_FILE: identity.service.privateFile,
      MODEL_SIGNERS: JSON.stringify(identity.signers),
      MODE: 'development',
    },
    after: ['blob', 'sqs'],
    ready: 'message',
    stopTurn: 3,
  };
}

/** Returns the part with another model repository, all of whose models are served. */
export function onModels(part: Part, models: string): Part {
  const { AURICLE_MODEL_NAMES: _, ...env } = part.env;
  const replaced = Object.entries(env).map(([name, value]) => [name, value === MODELS ? models : value]);
  return { ...part, env: Object.fromEntries(replaced) };
}

/** Returns an engine that serves all of a repository in place, or the agent of such an engine; it fetches no revision. */
export function inPlace(part: Part, models: string = MODELS): Part {
  const {
    AURICLE_ENGINE_REPOSITORY: _,
    AURICLE_ENGINE_MODEL_CONTROL_MODE: __,
    AURICLE_MODEL_NAMES: ___,
    ...env
  } = part.env;
  const name = env.AURICLE_AGENT === undefined ? 'AURICLE_ENGINE_REPOSITORY' : 'AURICLE_MODELS';
  return { ...part, env: { ...env, [name]: models } };
}

/** Returns the part, with further settings where it is an agent. */
export const withSettings = (part: Part, settings: Readonly<Record<string, string>> | undefined): Part =>
  part.env.AURICLE_AGENT === undefined ? part : { ...part, env: { ...part.env, ...settings } };

/** Values by name of the constant, by file of this tree: `lower-limits.ts`. */
export type LoweredLimits = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Returns the part with lowered limits. */
export const withLimits = (part: Part, limits: LoweredLimits | undefined): Part =>
  limits ? { ...part, env: { ...part.env, AURICLE_LIMITS: JSON.stringify(limits) } } : part;

const issuerOf = ({ issuer }: Identity, granted: readonly string[]) => ({
  issuer: ISSUER,
  audience: AUDIENCE,
  jwks: issuer.jwks,
  algorithms: ['ES256'],
  scopes: granted,
  types: ['at+jwt'],
});

const poolIssuer = (identity: Identity) => issuerOf(identity, ['pool']);

const attestation = (identity: Identity) => ({
  issuers: [{ profile: 'development', issuer: ATTESTATION_ISSUER, jwks: identity.attestation.jwks }],
  development: true,
});

function planRelease(ports: Ports, identity: Identity): Part {
  return {
    name: 'release',
    entry: 'infra/local/part/release.ts',
    env: {
      PORT: String(ports.release),
      ZONE_KEY_FILES: JSON.stringify(identity.zoneKeys.privateFiles),
      ISSUER: JSON.stringify(poolIssuer(identity)),
      ATTESTATION: JSON.stringify(attestation(identity)),
    },
    after: [],
    ready: 'message',
    stopTurn: 3,
  };
}

/** Plans the witness, a Worker of its own beside the edge. */
function planWitness({ ports, identity: { audit }, pools }: PartsPlan): LocalWorker {
  const logs = zonesOf(pools).map((zone) => {
    const origin = `${AUDIT_ORIGIN}/${zone}`;
    return { origin, yearly: true, keys: audit.logKeys(origin) };
  });
  return {
    name: 'witness',
    folder: 'edge/witness',
    port: ports.witness as number,
    bindings: { WITNESS_NAME, LOGS: JSON.stringify(logs) },
    secretFiles: { WITNESS_KEY: audit.witnessKeyFile },
  };
}

/** Folder from which the engine of a pool loads its models, written by its agent. */
const repositoryOf = (pool: Pool, state: string): string => path.join(state, 'engines', pool.name, 'models');

function planEngine(pool: Pool, state: string, ports: Ports): Part {
  const name = `engine-${pool.name}`;
  return {
    name,
    entry: 'infra/pool/engine/main.ts',
    env: {
      AURICLE_ENGINE_REPOSITORY: repositoryOf(pool, state),
      AURICLE_ENGINE_MODEL_CONTROL_MODE: 'explicit',
      AURICLE_ENGINE_HOST: HOST,
      AURICLE_ENGINE_PORT: String(ports[name]),
      AURICLE_ENGINE_METRICS_PORT: String(ports[`metrics-${pool.name}`]),
    },
    after: [],
    ready: { url: `http://${HOST}:${ports[name]}/v2/health/ready` },
    stopTurn: 3,
  };
}

function planTriton(state: string, pool: Pool, ports: Ports, triton: Installed): Part {
  const name = `engine-${pool.name}`;
  return {
    name,
    entry: 'infra/local/part/triton.ts',
    env: {
      INSTALLED: JSON.stringify(triton),
      MODELS,
      AURICLE_MODEL_NAMES: pool.models.join(','),
      DATA: path.join(state, 'engines', pool.name),
      LOGS: path.join(state, 'logs'),
      LOG_NAME: `triton-${pool.name}`,
      PORT: String(ports[name]),
      METRICS_PORT: String(ports[`metrics-${pool.name}`]),
    },
    after: [],
    ready: 'message',
    readyMsMax: TRITON_READY_MS_MAX,
    stopTurn: 3,
  };
}

/** Returns the agent with the repository of its engine, which it alone writes, and the store that all agents share. */
function withLoader(agent: Part, pool: Pool, state: string): Part {
  const env = {
    ...agent.env,
    AURICLE_ENGINE_REPOSITORY: repositoryOf(pool, state),
    AURICLE_MODEL_STORE: path.join(state, 'models'),
  };
  return { ...agent, env };
}

/** Returns the agent with a wait for its engine, which starts more slowly than an agent may. */
function onTriton(agent: Part, pool: Pool): Part {
  return { ...agent, after: [`engine-${pool.name}`] };
}

function planAgent(
  pool: Pool,
  { state, ports, identity, collector }: PartsPlan,
  edgeUrl: string,
  sqs: Variables,
): Part {
  const name = `agent-${pool.name}`;
  const url = `http://${HOST}:${ports[name]}`;
  return {
    name,
    entry: 'infra/pool/agent/main.ts',
    env: {
      AURICLE_AGENT: `${pool.name}-0`,
      AURICLE_POOL: pool.name,
      AURICLE_ZONE: pool.zone,
      AURICLE_REGION: pool.region,
      AURICLE_PLATFORM: pool.platform,
      AURICLE_ACCELERATOR: pool.accelerator,
      ...(pool.device && { AURICLE_DEVICE: pool.device }),
      AURICLE_PRICE: String(pool.price),
      AURICLE_LOCATION: pool.location,
      AURICLE_HOST: HOST,
      AURICLE_PORT: String(ports[name]),
      AURICLE_ENDPOINT: url,
      AURICLE_ENGINE_URL: `http://${HOST}:${ports[`engine-${pool.name}`]}`,
      AURICLE_ENGINE_METRICS_URL: `http://${HOST}:${ports[`metrics-${pool.name}`]}/metrics`,
      AURICLE_MODELS: MODELS,
      AURICLE_MODEL_NAMES: pool.models.join(','),
      AURICLE_EDGE_URL: edgeUrl,
      AURICLE_POOL_TOKEN_FILE: identity.poolTokenFiles[pool.name] as string,
      AURICLE_EDGE_KEYS_FILE: identity.ticket.publicFile,
      AURICLE_SERVICE_KEYS: JSON.stringify(identity.service.jwks),
      AURICLE_MODEL_SIGNERS: JSON.stringify(identity.signers),
      AURICLE_ATTESTATION_KEY_FILE: identity.attestation.privateFile,
      AURICLE_ATTESTATION_ISSUER: ATTESTATION_ISSUER,
      AURICLE_RELEASE_URL: `http://${HOST}:${ports.release}`,
      AURICLE_ZONE_KEYS_FILE: identity.zoneKeys.publicFile,
      AURICLE_FUNCTIONS_URL: `http://${HOST}:${ports.functions}`,
      ...sqs,
      AURICLE_STATE_DIR: path.join(state, 'agents', pool.name),
      // A laptop carries a few streams in the agent's own process.
      AURICLE_WORKERS: '1',
      AURICLE_AAC: 'on',
      AURICLE_LOG_REQUESTS: 'on',
      ...collector,
      AURICLE_MODE: 'development',
    },
    after: [],
    ready: { url: `${url}/readyz` },
    stopTurn: 2,
  };
}

function planEdge(plan: PartsPlan): Part {
  const { state, edgePort: port, open, ports, identity, pools, collector } = plan;
  const zones = zonesOf(pools);
  const functionsUrl = `http://${HOST}:${ports.functions}`;
  const bindings = {
    ISSUERS: JSON.stringify([issuerOf(identity, [...scopes, 'pool'])]),
    ATTESTATION: JSON.stringify(attestation(identity)),
    ZONES: JSON.stringify(zones),
    SERVICE_KEYS: JSON.stringify(identity.service.jwks),
    FUNCTIONS_URLS: JSON.stringify(Object.fromEntries(zones.map((zone) => [zone, functionsUrl]))),
    AUDIT_LOGS: JSON.stringify(
      Object.fromEntries(zones.map((zone) => [zone, { origin: AUDIT_ORIGIN, key: identity.audit.publicKey }])),
    ),
    // The gate shares two cores with every other part, so a late answer is no outage.
    AUDIT_WAIT_MS: '5000',
    LOG_REQUESTS: 'true',
    ...collector,
    MODE: 'development',
  };
  const edge: LocalWorker = {
    name: 'edge',
    folder: 'edge',
    port,
    bindings,
    secretFiles: {
      TICKET_KEY: identity.ticket.privateFile,
      GRANT_KEY: identity.grant.privateFile,
      EDGE_KEY: identity.edge.privateFile,
    },
  };
  return {
    name: 'edge',
    entry: 'infra/local/part/edge.ts',
    env: {
      DATA: path.join(state, 'edge'),
      LISTEN: open ? '0.0.0.0' : HOST,
      WORKERS: JSON.stringify([edge, planWitness(plan)]),
    },
    after: [],
    ready: 'message',
    stopTurn: 1,
  };
}

/** Reports whether a part belongs to another pool than the first. */
export const isLater = ({ name }: Part, pools: readonly Pool[]): boolean =>
  pools.slice(1).some((pool) => name === `engine-${pool.name}` || name === `agent-${pool.name}`);

/** Returns the parts with a wait of each later pool for the agent of the first one, which then has the cores. */
export function inTurn(parts: readonly Part[], pools: readonly Pool[]): Part[] {
  const first = parts.find(({ name }) => name === `agent-${pools[0]?.name}`);
  if (!first) return [...parts];
  return parts.map((part) => (isLater(part, pools) ? { ...part, after: [...part.after, first.name] } : part));
}
