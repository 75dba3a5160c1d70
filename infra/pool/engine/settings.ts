import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { argumentProblem } from '../../../shared/argument-problem.ts';

export const USAGE = `node infra/local/node.cjs infra/pool/engine/main.ts --repository DIR [--port N …]

  --repository DIR   the model repository (AURICLE_ENGINE_REPOSITORY)
  --model NAME       only this model is loaded; may be given again (AURICLE_ENGINE_MODELS, with commas; default all)
  --model-control-mode MODE
                     none: loads all models or those of --model, and retries failed loads; explicit: loads those of
                     --model, then what is requested, each once (AURICLE_ENGINE_MODEL_CONTROL_MODE; default none)
  --host ADDRESS     where it listens (AURICLE_ENGINE_HOST; default 127.0.0.1)
  --port N           KServe v2 over HTTP; 0 takes a free port (AURICLE_ENGINE_PORT; default 8000)
  --metrics-port N   Prometheus (AURICLE_ENGINE_METRICS_PORT; default 8002)
  --threads N        inside one execution; more than one on an idle machine only (AURICLE_ENGINE_THREADS; default 1)
`;

export const asksForHelp = (argv: readonly string[]): boolean => argv.includes('--help') || argv.includes('-h');

export interface Settings {
  readonly repository: string;
  readonly host: string;
  /** 0: any free port; the ready message names it. */
  readonly port: number;
  readonly metricsPort: number;
  /** ONNX Runtime threads inside one execution. More than one helps only on an otherwise idle machine. */
  readonly intraThreads: number;
  /** Models to load at the start; undefined: all. */
  readonly models: readonly string[] | undefined;
  /** Triton's `--model-control-mode=explicit`: a failed load is the caller's to repeat, and leaves the server ready. */
  readonly explicit: boolean;
}

const whole = (name: string, text: string, low: number, high: number): number => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < low || value > high) {
    throw new Error(`${name} must be a whole number from ${low} to ${high}, got '${text}'`);
  }
  return value;
};

function readFlags(argv: readonly string[]) {
  const flag = { type: 'string' } as const;
  const options = { repository: flag, host: flag, port: flag, 'metrics-port': flag, threads: flag };
  const more = { model: { ...flag, multiple: true }, 'model-control-mode': flag } as const;
  try {
    return parseArgs({ args: [...argv], options: { ...options, ...more } }).values;
  } catch (error) {
    throw new Error(`${argumentProblem(error)}; --help lists the flags`);
  }
}

/**
 * Reads the settings. Command-line flags win over AURICLE_ENGINE_… variables. An invalid setting stops the
 * start.
 */
export function readSettings(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Settings {
  const values = readFlags(argv);
  const repository = values.repository ?? env.AURICLE_ENGINE_REPOSITORY;
  if (!repository) throw new Error('--repository or AURICLE_ENGINE_REPOSITORY must name the model repository');
  const mode = values['model-control-mode'] ?? env.AURICLE_ENGINE_MODEL_CONTROL_MODE ?? 'none';
  if (mode !== 'none' && mode !== 'explicit')
    throw new Error(`model control mode must be none or explicit, got '${mode}'`);
  const models = values.model ?? env.AURICLE_ENGINE_MODELS?.split(',').filter(Boolean);
  return {
    repository: path.resolve(repository),
    host: values.host ?? env.AURICLE_ENGINE_HOST ?? '127.0.0.1',
    port: whole('port', values.port ?? env.AURICLE_ENGINE_PORT ?? '8000', 0, 65_535),
    metricsPort: whole('metrics port', values['metrics-port'] ?? env.AURICLE_ENGINE_METRICS_PORT ?? '8002', 0, 65_535),
    intraThreads: whole('threads', values.threads ?? env.AURICLE_ENGINE_THREADS ?? '1', 1, availableParallelism()),
    models: models ?? (mode === 'explicit' ? [] : undefined),
    explicit: mode === 'explicit',
  };
}
