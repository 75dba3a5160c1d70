import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

/** Every bound of the engine, with its unit and who enforces it. */
export const limits = {
  /** Bytes of one request body, also after decompression; Triton's default. read-body. */
  bodyBytes: 64 * 2 ** 20,
  /** Bytes of all bodies being read or inferred; beyond it a request is told 503. read-body. */
  bodyBytesInFlight: 256 * 2 ** 20,
  /** Requests waiting in one model's queue where its configuration names no maximum (0 means unlimited there). Batcher. */
  queuedRequests: 1024,
  /** Open client connections; the kernel refuses more. serve. */
  connections: 512,
  /** Milliseconds for request headers to arrive. serve. */
  headerMs: 10_000,
  /** Milliseconds for a whole request body to arrive. serve. */
  requestMs: 120_000,
  /** Milliseconds an idle connection is kept; longer than clients keep theirs, so that they close first. serve. */
  keepAliveMs: 65_000,
  /** Threads of one model: each holds the whole network in memory. settle. */
  instancesPerModel: 16,
  /** Threads inside one instance. settle. */
  threadsPerInstance: 16,
  /** Bytes of a config.pbtxt. read-model. */
  configBytes: 2 ** 20,
  /** Directories of a repository that are looked at. repository. */
  models: 256,
  /** Steps of one ensemble. settle. */
  ensembleSteps: 64,
  /** Values in one warm-up tensor. warm-up. */
  warmupElements: 64 * 2 ** 20,
  /** Executions of one warm-up sample. warm-up. */
  warmupCount: 100,
  /** Milliseconds that running inferences get to finish when the process stops. main. */
  drainMs: 10_000,
  /** Milliseconds for the last answers to reach their clients after that. main. */
  answerMs: 1_000,
} as const;

export interface Settings {
  readonly repository: string;
  readonly host: string;
  /** 0: any free port; the real one is in the ready message. */
  readonly port: number;
  readonly metricsPort: number;
  /** ONNX Runtime threads inside one execution. More than one helps only on an otherwise idle machine. */
  readonly intraThreads: number;
  /** Models to load at the start; undefined: all. */
  readonly models: readonly string[] | undefined;
}

const whole = (name: string, text: string, low: number, high: number): number => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < low || value > high) {
    throw new Error(`${name} must be a whole number from ${low} to ${high}, got '${text}'`);
  }
  return value;
};

/** Command-line flags win over AURICLE_ENGINE_… variables. A wrong setting stops the start: it is the operator's bug. */
export function readSettings(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Settings {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      repository: { type: 'string' },
      host: { type: 'string' },
      port: { type: 'string' },
      'metrics-port': { type: 'string' },
      threads: { type: 'string' },
      model: { type: 'string', multiple: true },
    },
  });
  const repository = values.repository ?? env.AURICLE_ENGINE_REPOSITORY;
  if (!repository) throw new Error('--repository or AURICLE_ENGINE_REPOSITORY must name the model repository');
  const models = values.model ?? env.AURICLE_ENGINE_MODELS?.split(',').filter(Boolean);
  return {
    repository: path.resolve(repository),
    host: values.host ?? env.AURICLE_ENGINE_HOST ?? '127.0.0.1',
    port: whole('port', values.port ?? env.AURICLE_ENGINE_PORT ?? '8000', 0, 65_535),
    metricsPort: whole('metrics port', values['metrics-port'] ?? env.AURICLE_ENGINE_METRICS_PORT ?? '8002', 0, 65_535),
    intraThreads: whole('threads', values.threads ?? env.AURICLE_ENGINE_THREADS ?? '1', 1, availableParallelism()),
    models,
  };
}
