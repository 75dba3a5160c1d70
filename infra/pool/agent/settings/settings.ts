import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { JSONWebKeySet } from 'jose';
import type { AgentDescription } from '../../../../shared/pool/description.ts';
import type { SignerKey } from '../../../../shared/registry/signature-key.ts';
import { applyRules, parseSettings } from '../../../../shared/settings/problem.ts';
import type { TraceSettings } from '../telemetry/traces.ts';
import { commonRules, productionRules } from './check.ts';
import { type Environment, environment, meanings } from './schema.ts';
import { type SpeechServerSettings, speechServerOf } from './speech-server.ts';

export interface Settings {
  readonly agent: string;
  readonly pool: string;
  readonly zone: string;
  readonly region: string;
  readonly platform: 'AKS' | 'EKS' | 'other';
  readonly accelerator: 'gpu' | 'cpu';
  readonly device: string | undefined;
  /** US dollars an hour. */
  readonly price: number | undefined;
  readonly location: AgentDescription['location'];
  readonly host: string;
  readonly port: number;
  readonly endpoint: string | undefined;
  /** Absent: plain HTTP. */
  readonly tls: { readonly certificateFile: string; readonly keyFile: string } | undefined;
  readonly engine: EngineSettings;
  readonly engineMetricsUrl: string | undefined;
  /** Mounted repository; empty where the engine is a speech server, which has its own models. */
  readonly models: string;
  /** Models of that repository to serve; absent: all. */
  readonly modelNames: readonly string[] | undefined;
  /** Absent: the engine serves the models in place. */
  readonly loader: LoaderSettings | undefined;
  readonly edgeUrl: string;
  readonly poolToken: PoolTokenSettings;
  readonly edgeKeysFile: string;
  readonly serviceKeys: JSONWebKeySet | undefined;
  /** Absent: signatures of models are not checked. */
  readonly modelSigners: readonly SignerKey[] | undefined;
  readonly attestation:
    | { readonly kind: 'development'; readonly keyFile: string; readonly issuer: string }
    | { readonly kind: 'azure'; readonly url: string; readonly provider: string };
  /** Authority of the zone's private keys, and the file of the public ones; absent, files cannot be opened. */
  readonly release: ReleaseSettings | undefined;
  /** Queue of upload jobs; absent, this agent takes none. */
  readonly batch: BatchSettings | undefined;
  readonly stateDir: string;
  readonly mode: 'development' | 'production';
  readonly slots: number;
  readonly streams: number;
  /** Processes that carry live streams; 1 is the agent's own. */
  readonly workers: number;
  /** Whether utterances wait for others in windows. */
  readonly windows: boolean;
  readonly degradeWindowMs: number;
  /** Whether AAC is decoded. */
  readonly aac: boolean;
  /** Collector of spans; absent, none are made. */
  readonly traces: TraceSettings | undefined;
  readonly logRequests: boolean;
  readonly drainMs: number;
}

/** Engine of an agent: a KServe v2 server, or an OpenAI-compatible speech server. */
export type EngineSettings =
  | { readonly kind: 'kserve'; readonly url: string }
  | ({ readonly kind: 'openai' } & SpeechServerSettings);

/** Target of this machine: `linux-amd64`, `linux-arm64`. */
const MACHINE = `${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;

export interface LoaderSettings {
  readonly repository: string;
  readonly store: string;
  /** Builds of revisions that the engine takes. */
  readonly target: string;
  readonly bytes: { readonly engine: number; readonly ram: number; readonly ssd: number };
}

/** Source of the pool token: a file, or the token endpoint of an identity provider. */
export type PoolTokenSettings =
  | { readonly kind: 'file'; readonly file: string }
  | {
      readonly kind: 'client';
      readonly url: string;
      readonly client: string;
      readonly scope: string | undefined;
      readonly audience: string | undefined;
      readonly credential: { readonly kind: 'secret' | 'assertion'; readonly file: string };
    };

/** Source of zone keys: an authority or a key vault. */
export type ReleaseSettings = { readonly zoneKeysFile: string } & (
  | { readonly url: string }
  | { readonly vault: string }
);

export interface BatchSettings {
  readonly functionsUrl: string;
  readonly queue: string;
  readonly region: string;
  readonly endpoint: string | undefined;
  readonly jobs: number;
}

/** Problems that the operator must fix, one line for each variable or file. Values never appear. */
export class SettingsError extends Error {
  readonly lines: readonly string[];
  constructor(lines: readonly string[]) {
    super(lines.join('; '));
    this.name = 'SettingsError';
    this.lines = lines;
  }
}

/** Describes a wrong variable and its meaning. */
export const lineFor = (name: string, wrong: string) =>
  `${name} ${wrong}: ${meanings[name as keyof typeof meanings] ?? 'unknown'}`;

/** @throws SettingsError with every variable that is wrong, missing or unfit for production. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const parsed = parseSettings(environment, env);
  const rules = parsed.data.AURICLE_MODE === 'development' ? commonRules : productionRules;
  // Messages of schemas may quote values: of what cannot be read the operator gets the meaning only.
  const unread = new Set(parsed.problems.map(({ setting }) => setting));
  const problems = applyRules(rules, parsed).map(({ setting, problem }) =>
    lineFor(setting, unread.has(setting) ? (env[setting] ? 'is wrong' : 'is missing') : problem),
  );
  if (problems.length > 0) throw new SettingsError([...new Set(problems)]);
  const e = parsed.data as Environment;
  return {
    agent: e.AURICLE_AGENT,
    pool: e.AURICLE_POOL,
    zone: e.AURICLE_ZONE,
    region: e.AURICLE_REGION,
    platform: e.AURICLE_PLATFORM,
    accelerator: e.AURICLE_ACCELERATOR,
    device: e.AURICLE_DEVICE,
    price: e.AURICLE_PRICE,
    location: e.AURICLE_LOCATION,
    host: e.AURICLE_HOST,
    port: e.AURICLE_PORT,
    endpoint: e.AURICLE_ENDPOINT,
    tls: tlsOf(e),
    engine: engineOf(e),
    engineMetricsUrl: e.AURICLE_ENGINE_METRICS_URL,
    models: e.AURICLE_MODELS ?? '',
    modelNames: e.AURICLE_MODEL_NAMES,
    loader: loaderOf(e),
    edgeUrl: e.AURICLE_EDGE_URL.replace(/\/$/, ''),
    poolToken: poolTokenOf(e),
    edgeKeysFile: e.AURICLE_EDGE_KEYS_FILE,
    serviceKeys: e.AURICLE_SERVICE_KEYS as JSONWebKeySet | undefined,
    attestation: attestationOf(e),
    modelSigners: e.AURICLE_MODEL_SIGNERS,
    release: releaseOf(e),
    batch: batchOf(e),
    stateDir: e.AURICLE_STATE_DIR,
    mode: e.AURICLE_MODE,
    slots: e.AURICLE_SLOTS,
    streams: e.AURICLE_STREAMS,
    workers: e.AURICLE_WORKERS,
    windows: e.AURICLE_WINDOWS === 'on',
    degradeWindowMs: e.AURICLE_DEGRADE_WINDOW_SECONDS * 1_000,
    aac: e.AURICLE_AAC === 'on',
    traces: tracesOf(e),
    logRequests: e.AURICLE_LOG_REQUESTS === 'on',
    drainMs: e.AURICLE_DRAIN_MS,
  };
}

/** A rule demands a file or an endpoint, and with that a client and one of its credentials. */
function poolTokenOf(e: Environment): PoolTokenSettings {
  if (e.AURICLE_TOKEN_URL === undefined) return { kind: 'file', file: e.AURICLE_POOL_TOKEN_FILE ?? '' };
  const { AURICLE_TOKEN_SECRET_FILE: secret, AURICLE_TOKEN_ASSERTION_FILE: assertion = '' } = e;
  return {
    kind: 'client',
    url: e.AURICLE_TOKEN_URL,
    client: e.AURICLE_TOKEN_CLIENT ?? '',
    scope: e.AURICLE_TOKEN_SCOPE,
    audience: e.AURICLE_TOKEN_AUDIENCE,
    credential: secret === undefined ? { kind: 'assertion', file: assertion } : { kind: 'secret', file: secret },
  };
}

function tlsOf({ AURICLE_TLS_CERTIFICATE_FILE: certificateFile, AURICLE_TLS_KEY_FILE: keyFile }: Environment) {
  return certificateFile === undefined || keyFile === undefined ? undefined : { certificateFile, keyFile };
}

function engineOf(e: Environment): EngineSettings {
  const server = speechServerOf(e);
  if (server) return { kind: 'openai', ...server };
  return { kind: 'kserve', url: (e.AURICLE_ENGINE_URL ?? '').replace(/\/$/, '') };
}

const tracesOf = ({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers = {} }: Environment) =>
  endpoint === undefined ? undefined : { endpoint, headers };

function loaderOf(e: Environment): LoaderSettings | undefined {
  if (e.AURICLE_ENGINE_REPOSITORY === undefined) return undefined;
  return {
    repository: e.AURICLE_ENGINE_REPOSITORY,
    store: e.AURICLE_MODEL_STORE ?? path.join(e.AURICLE_STATE_DIR, 'models'),
    target: e.AURICLE_TARGET ?? MACHINE,
    bytes: { engine: e.AURICLE_ENGINE_BYTES, ram: e.AURICLE_RAM_BYTES, ssd: e.AURICLE_STORE_BYTES },
  };
}

function releaseOf(e: Environment): ReleaseSettings | undefined {
  const { AURICLE_RELEASE_URL: url, AURICLE_RELEASE_VAULT: vault, AURICLE_ZONE_KEYS_FILE: zoneKeysFile } = e;
  if (zoneKeysFile === undefined) return undefined;
  if (vault !== undefined) return { vault, zoneKeysFile };
  return url === undefined ? undefined : { url: url.replace(/\/$/, ''), zoneKeysFile };
}

function batchOf(e: Environment): BatchSettings | undefined {
  if (e.AURICLE_FUNCTIONS_URL === undefined || e.SQS_REGION === undefined) return undefined;
  return {
    functionsUrl: e.AURICLE_FUNCTIONS_URL.replace(/\/$/, ''),
    queue: e.AURICLE_JOBS_QUEUE,
    region: e.SQS_REGION,
    endpoint: e.SQS_ENDPOINT,
    jobs: e.AURICLE_BATCH_JOBS,
  };
}

/** The source of attestations. A rule demands one of the two, and in production the first. */
function attestationOf(e: Environment): Settings['attestation'] {
  return e.AURICLE_ATTESTATION_URL === undefined
    ? { kind: 'development', keyFile: e.AURICLE_ATTESTATION_KEY_FILE ?? '', issuer: e.AURICLE_ATTESTATION_ISSUER }
    : { kind: 'azure', url: e.AURICLE_ATTESTATION_URL, provider: e.AURICLE_ATTESTATION_PROVIDER };
}

/** @throws SettingsError when the file cannot be read or is not JSON; its content never appears. */
export function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const code =
      error instanceof SyntaxError ? 'is not JSON' : `cannot be read (${(error as NodeJS.ErrnoException).code})`;
    throw new SettingsError([`${file} ${code}`]);
  }
}
