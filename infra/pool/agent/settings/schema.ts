import os from 'node:os';
import { z } from 'zod';
import { jsonText } from '../../../../shared/json-text.ts';
import { agentDescription } from '../../../../shared/pool/description.ts';
import { signerKey } from '../../../../shared/registry/signature-key.ts';
import { traceSettings } from '../../../../shared/trace/settings.ts';
import { speechServerEnvironment, speechServerMeanings } from './speech-server.ts';

/** Concurrent jobs of one agent: while one waits for storage or decodes, the other keeps the engine busy. */
const BATCH_JOBS_MAX = 2;
/** Default of AURICLE_STREAMS, open streams of one agent; each holds up to 2 MiB of sound. */
const STREAMS_PER_AGENT = 512;

const name = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/);
const bytes = z.coerce.number().int().positive();
/** Degrees north and east, as `52.37,4.90`. */
const location = z
  .string()
  .regex(/^-?\d+(\.\d+)?,-?\d+(\.\d+)?$/)
  .transform((text) => {
    const [latitude = 0, longitude = 0] = text.split(',').map(Number);
    return { latitude, longitude };
  })
  .pipe(agentDescription.shape.location.unwrap());
const port = z.coerce.number().int().min(0).max(65_535);

/** Environment variables of an agent. It reads no others. */
export const environment = z.object({
  /** This instance, unique in the fleet: the pod's name. */
  AURICLE_AGENT: name,
  /** The regional pool, for example `aks-westeurope`. */
  AURICLE_POOL: name,
  /** Residency zone; must equal the claim of the pool token. */
  AURICLE_ZONE: name,
  AURICLE_REGION: name,
  AURICLE_PLATFORM: z.enum(['AKS', 'EKS', 'other']).default('other'),
  AURICLE_ACCELERATOR: z.enum(['gpu', 'cpu']).default('cpu'),
  /** Accelerator by its product name, such as `h100`. */
  AURICLE_DEVICE: name.optional(),
  /** US dollars an hour of this agent and its engine. */
  AURICLE_PRICE: z.coerce.number().pipe(agentDescription.shape.price.unwrap()).optional(),
  AURICLE_LOCATION: location.optional(),
  /** Address and port to listen on; port 0 takes a free one. */
  AURICLE_HOST: z.string().default('0.0.0.0'),
  AURICLE_PORT: port,
  /** Files in PEM with the certificate chain and the key of TLS 1.3; absent in development, the agent serves plain HTTP. */
  AURICLE_TLS_CERTIFICATE_FILE: z.string().min(1).optional(),
  AURICLE_TLS_KEY_FILE: z.string().min(1).optional(),
  /** Address at which the edge reaches this agent; absent, it follows from host and port. */
  AURICLE_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  /** KServe v2 server beside this agent. */
  AURICLE_ENGINE_URL: z.url({ protocol: /^http$/ }).optional(),
  ...speechServerEnvironment,
  /** That server's page of metrics, to be shown below the agent's own. */
  AURICLE_ENGINE_METRICS_URL: z.url({ protocol: /^http$/ }).optional(),
  /** Model repository, the same the engine reads: for tokens, language models and revision digests. */
  AURICLE_MODELS: z.string().min(1).optional(),
  /** Models of that repository that this agent serves; absent, all. */
  AURICLE_MODEL_NAMES: z
    .string()
    .regex(/^[A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*$/)
    .transform((text) => text.split(','))
    .optional(),
  /**
   * Folder that the engine loads models from, written by the agent alone; the engine starts with nothing loaded. Absent
   * in development: the engine serves AURICLE_MODELS in place, and no revision is fetched.
   */
  AURICLE_ENGINE_REPOSITORY: z.string().min(1).optional(),
  /** Store of verified model files, which agents of a node may share; absent, it is in the state folder. */
  AURICLE_MODEL_STORE: z.string().min(1).optional(),
  /** Builds of revisions that this node's engine takes; absent, those of its operating system and architecture. */
  AURICLE_TARGET: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$/)
    .optional(),
  /** Bounds of the tiers: files on disk, copies kept in the engine's repository for a next load, memory of the engine. */
  AURICLE_STORE_BYTES: bytes.default(200e9),
  AURICLE_RAM_BYTES: bytes.default(Number.MAX_SAFE_INTEGER),
  AURICLE_ENGINE_BYTES: bytes.default(Number.MAX_SAFE_INTEGER),
  /** Edge, base URL of the heartbeat socket. */
  AURICLE_EDGE_URL: z.url({ protocol: /^https?$/ }),
  /** File with the pool token; read at each use, so that it can be renewed underneath. */
  AURICLE_POOL_TOKEN_FILE: z.string().min(1).optional(),
  /** Token endpoint that issues pool tokens for client credentials, in place of that file. */
  AURICLE_TOKEN_URL: z.url({ protocol: /^https?$/ }).optional(),
  AURICLE_TOKEN_CLIENT: z.string().min(1).optional(),
  AURICLE_TOKEN_SCOPE: z.string().min(1).optional(),
  AURICLE_TOKEN_AUDIENCE: z.string().min(1).optional(),
  /** Client secret, or federated token of the platform; both are read at each request. */
  AURICLE_TOKEN_SECRET_FILE: z.string().min(1).optional(),
  AURICLE_TOKEN_ASSERTION_FILE: z.string().min(1).optional(),
  /** File with the key set (JWKS) that the edge's tickets are signed with. */
  AURICLE_EDGE_KEYS_FILE: z.string().min(1),
  /** Key set (JWKS) that the functions sign release maps with; without it none is believed. */
  AURICLE_SERVICE_KEYS: jsonText(z.object({ keys: z.array(z.record(z.string(), z.unknown())) })).optional(),
  /** Keys that may sign revisions. In production the agent serves signed revisions only. */
  AURICLE_MODEL_SIGNERS: jsonText(z.array(signerKey)).optional(),
  /** Development only: private JWK of the self-issued attestation authority. */
  AURICLE_ATTESTATION_KEY_FILE: z.string().min(1).optional(),
  /** Issuer that the self-issued authority calls itself. */
  AURICLE_ATTESTATION_ISSUER: z.string().default('https://attestation.auricle.local'),
  /** Production: base URL of the attestation sidecar in this pod. */
  AURICLE_ATTESTATION_URL: z.url().optional(),
  /** Production: host name of the attestation provider that the sidecar asks. */
  AURICLE_ATTESTATION_PROVIDER: z.string().default('sharedweu.weu.attest.azure.net'),
  /** Base URL of the release authority, which gives attested agents the key of their zone; without it no batch work. */
  AURICLE_RELEASE_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** Vault whose keys are released to attestations, in place of AURICLE_RELEASE_URL. Tokens of the pod go to this host. */
  AURICLE_RELEASE_VAULT: z
    .string()
    .regex(/^https:\/\/[a-z0-9-]{3,24}\.(vault|managedhsm)\.(azure\.net|azure\.cn|usgovcloudapi\.net)\/?$/)
    .optional(),
  /** File with the public keys of zones: only these are taken from the authority. */
  AURICLE_ZONE_KEYS_FILE: z.string().min(1).optional(),
  /** Base URL of the functions, which say what a job is about; without it no batch work. */
  AURICLE_FUNCTIONS_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** Prefix of the names of job queues; zone and model follow. */
  AURICLE_JOBS_QUEUE: z.string().min(1).max(64).default('jobs'),
  /** Region of the job queues, and where SQS answers if that is not said by the region. */
  SQS_REGION: z.string().min(1).optional(),
  SQS_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  /** Jobs of uploads worked on at once. */
  AURICLE_BATCH_JOBS: z.coerce.number().int().min(1).max(64).default(BATCH_JOBS_MAX),
  /** Directory for what must survive a restart: audit events that were not acknowledged. */
  AURICLE_STATE_DIR: z.string().min(1),
  AURICLE_MODE: z.enum(['development', 'production']).default('production'),
  /** Utterances at the engine at once. The engine batches them, so more than it has instances is right. */
  AURICLE_SLOTS: z.coerce.number().int().min(1).max(1_024).default(4),
  /** Live streams open at once. */
  AURICLE_STREAMS: z.coerce.number().int().min(1).max(100_000).default(STREAMS_PER_AGENT),
  /** Processes that carry live streams, one for each core; 1 carries them in the agent's own process. */
  AURICLE_WORKERS: z.coerce.number().int().min(1).max(256).default(os.availableParallelism()),
  /** Windows before the engine's own batching (README, "Windows"). */
  AURICLE_WINDOWS: z.enum(['on', 'off']).default('off'),
  /** Length of a window of A20, seconds; 0 never degrades. */
  AURICLE_DEGRADE_WINDOW_SECONDS: z.coerce.number().int().min(0).max(3_600).default(30),
  /** Whether recordings of AAC are decoded (README, "AAC"). */
  AURICLE_AAC: z.enum(['on', 'off']).default('off'),
  ...traceSettings,
  /** Whether each request is logged with its id at the edge. */
  AURICLE_LOG_REQUESTS: z.enum(['on', 'off']).default('off'),
  /** Time for work in flight after the order to stop, ms; below the platform's grace period. */
  AURICLE_DRAIN_MS: z.coerce.number().int().min(0).default(1_500),
});

/** Values of the variables, read but not judged together. */
export type Environment = z.output<typeof environment>;

/** Meaning of each variable, as the operator reads it beside a problem. */
export const meanings: Record<keyof Environment, string> = {
  AURICLE_AGENT: "name of this instance, unique in the fleet: the pod's",
  AURICLE_POOL: 'regional pool, for example aks-westeurope',
  AURICLE_ZONE: 'residency zone; must equal the claim of the pool token',
  AURICLE_REGION: 'region of the platform, for example westeurope',
  AURICLE_PLATFORM: 'AKS, EKS or other',
  AURICLE_ACCELERATOR: 'gpu or cpu',
  AURICLE_DEVICE: 'accelerator by its product name, for example h100',
  AURICLE_PRICE: 'US dollars an hour of this agent and its engine, 0 to 1000',
  AURICLE_LOCATION: 'degrees north and east of the region, for example 52.37,4.90',
  AURICLE_HOST: 'address to listen on',
  AURICLE_PORT: 'port to listen on; 0 takes a free one',
  AURICLE_TLS_CERTIFICATE_FILE: 'file in PEM with the certificate chain of the listener',
  AURICLE_TLS_KEY_FILE: 'file in PEM with its private key',
  AURICLE_ENDPOINT: 'http(s) address where the edge reaches this agent; absent, it follows from host and port',
  AURICLE_ENGINE_URL: 'http address of the KServe v2 server beside this agent',
  ...speechServerMeanings,
  AURICLE_ENGINE_METRICS_URL: "http address of that server's page of metrics",
  AURICLE_MODELS: 'folder of the model repository, the one the engine reads',
  AURICLE_MODEL_NAMES: 'models of that repository to serve, with commas; all unless set',
  AURICLE_ENGINE_REPOSITORY: 'folder that the engine loads models from and the agent alone writes',
  AURICLE_MODEL_STORE: 'folder of verified model files; in the state folder unless set',
  AURICLE_TARGET: 'builds of revisions that the engine takes, for example linux-arm64 or jetson',
  AURICLE_STORE_BYTES: 'bytes of model files on disk, 200e9 unless set',
  AURICLE_RAM_BYTES:
    'bytes of copies kept for a next load; other copies of loaded models are not counted; unbounded unless set',
  AURICLE_ENGINE_BYTES: 'bytes of memory that loaded models may take; unbounded unless set',
  AURICLE_EDGE_URL: 'http(s) address of the edge, for the heartbeat',
  AURICLE_POOL_TOKEN_FILE: 'file with the pool token',
  AURICLE_TOKEN_URL: 'http(s) token endpoint that issues pool tokens, in place of AURICLE_POOL_TOKEN_FILE',
  AURICLE_TOKEN_CLIENT: 'client id at that endpoint',
  AURICLE_TOKEN_SCOPE: 'scope of its requests, for example api://auricle/.default',
  AURICLE_TOKEN_AUDIENCE: 'audience of its requests, for providers that take one',
  AURICLE_TOKEN_SECRET_FILE: 'file with the client secret',
  AURICLE_TOKEN_ASSERTION_FILE: 'file with a federated token in place of the secret',
  AURICLE_EDGE_KEYS_FILE: "file with the key set (JWKS) of the edge's tickets",
  AURICLE_SERVICE_KEYS: 'key set (JWKS) of the functions, which sign release maps',
  AURICLE_MODEL_SIGNERS: 'keys that may sign revisions: [{"name", "key"}], the key as SPKI in base64',
  AURICLE_ATTESTATION_KEY_FILE: 'development: file with the private JWK of the self-issued authority',
  AURICLE_ATTESTATION_ISSUER: 'development: what that authority calls itself',
  AURICLE_ATTESTATION_URL: 'production: address of the attestation sidecar in this pod',
  AURICLE_ATTESTATION_PROVIDER: 'production: host name of the provider that the sidecar asks',
  AURICLE_RELEASE_URL: 'http(s) address of the authority that releases the key of the zone',
  AURICLE_RELEASE_VAULT: 'https address of the key vault that releases the key of the zone, in place of that authority',
  AURICLE_ZONE_KEYS_FILE: 'file with the public keys of zones; goes with either',
  AURICLE_FUNCTIONS_URL: 'http(s) address of the functions, for jobs of uploads',
  AURICLE_JOBS_QUEUE: 'prefix of the names of job queues',
  SQS_REGION: 'region of the job queues; goes with AURICLE_FUNCTIONS_URL',
  SQS_ENDPOINT: 'http(s) address of SQS; absent, it follows from the region',
  AURICLE_BATCH_JOBS: 'jobs of uploads worked on at once, 1 to 64',
  AURICLE_STATE_DIR: 'folder for what must survive a restart',
  AURICLE_MODE: 'development or production',
  AURICLE_SLOTS: 'utterances at the engine at once, 1 to 1024',
  AURICLE_STREAMS: 'live streams open at once, 1 to 100000',
  AURICLE_WORKERS: 'processes that carry live streams, 1 to 256; as many as cores unless set',
  AURICLE_WINDOWS: 'on holds utterances up to 50 ms, batch work up to 500 ms, for larger batches',
  AURICLE_DEGRADE_WINDOW_SECONDS: 'seconds of a window of which three bad ones degrade the agent; 0: never',
  AURICLE_AAC: 'on decodes AAC, whose patents the operator answers for; off refuses it',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http(s) address of a collector of traces (OTLP/HTTP); none unless set',
  OTEL_EXPORTER_OTLP_HEADERS: 'headers for it, as name=value,name=value',
  AURICLE_LOG_REQUESTS: 'on logs a line for each request, with its id at the edge',
  AURICLE_DRAIN_MS: 'milliseconds that work in flight may take after the order to stop',
};
