import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

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
