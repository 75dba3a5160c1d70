// Evidence "load": the engine has the models of a revision ready, describes each as its folder does, and
// answers every step of live streams while recordings run beside them. No KServe engine reports which bytes
// it has loaded: an agent names its models by the digest that it has computed itself.
import type { z } from 'zod';
import { jsonOf } from '../../../../shared/json-text.ts';
import { fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { type ModelMetadata, modelMetadata, serverMetadata } from '../../../../shared/kserve/metadata.ts';
import type { Evidence } from '../../../../shared/registry/evidence.ts';
import type { Engine } from '../../agent/engine/engine.ts';
import type { Message, ModelConfig } from '../../models/config/schema.ts';
import { findStreamProblem, MEASURE_STREAM_STEPS } from './check-streams.ts';
import { MEASURE_STREAMS } from './limits.ts';
import type { Revision } from './revision.ts';

/** Longest wait for an engine's readiness and model list. */
const MEASURE_ENGINE_MS = 10_000;

type Load = Extract<Evidence, { kind: 'load' }>;

/** Reads an address below the engine's; `undefined` unless it answers 200. */
export type FetchPage = (path: string) => Promise<{ readonly body: string } | undefined>;

export const engineClient =
  (engine: string): FetchPage =>
  async (path) => {
    try {
      const response = await fetch(`${engine}${path}`, { signal: AbortSignal.timeout(MEASURE_ENGINE_MS) });
      const body = await response.text();
      return response.status === 200 ? { body } : undefined;
    } catch {
      return undefined;
    }
  };

/** Two connections to an engine that the check uses. */
export interface LoadTarget {
  readonly fetchPage: FetchPage;
  readonly infer: Engine['infer'];
}

export async function checkLoad(
  { model, parts }: Pick<Revision, 'model' | 'parts'>,
  { fetchPage, infer }: LoadTarget,
  tool: string,
): Promise<Load> {
  const server = read(serverMetadata, await fetchPage('/v2'));
  const engine = server ? `${server.name} ${server.version}`.slice(0, 100) : 'unknown';
  const { description, live } = model;
  const steps = live ? MEASURE_STREAMS * MEASURE_STREAM_STEPS : 0;
  const facts = { revision: description.revision, models: parts.size, engine, ...(live && { streamSteps: steps }) };
  const loaded = await findProblem(parts, fetchPage);
  const problem = loaded ?? (live && (await findStreamProblem({ infer, model: description.name, live })));
  return problem === undefined
    ? { kind: 'load', tool, verdict: 'PASS', facts }
    : { kind: 'load', tool, verdict: 'FAIL', facts: { ...facts, problem: problem.slice(0, 512) } };
}

async function findProblem(parts: Revision['parts'], fetchPage: FetchPage): Promise<string | undefined> {
  if (!(await fetchPage('/v2/health/live'))) return 'the engine does not answer';
  for (const [name, config] of parts) {
    const place = `/v2/models/${encodeURIComponent(name)}`;
    if (!(await fetchPage(`${place}/ready`))) return `${name} is not ready`;
    const metadata = read(modelMetadata, await fetchPage(place));
    const wrong = metadata ? differenceOf(config, metadata) : 'the engine does not describe it';
    if (wrong !== undefined) return `${name}: ${wrong}`;
  }
  return undefined;
}

function read<T extends z.ZodType>(schema: T, answered: { readonly body: string } | undefined): z.infer<T> | undefined {
  return answered && schema.safeParse(jsonOf(answered.body)).data;
}

type Io = Message<'Input'> | Message<'Output'>;

/** Returns the first difference between the engine's description of a model and its folder. */
export function differenceOf(config: ModelConfig, metadata: ModelMetadata): string | undefined {
  const own = (list: readonly Io[]) =>
    list.map(({ name, data_type, dims }) => {
      const shape = config.max_batch_size > 0 ? [-1, ...dims] : dims;
      return `${name} ${fromConfigName(data_type) ?? 'BYTES'}[${shape}]`;
    });
  const theirs = (list: ModelMetadata['inputs']) =>
    list.map(({ name, datatype, shape }) => `${name} ${datatype}[${shape}]`);
  for (const [what, here, there] of [
    ['takes', own(config.input), theirs(metadata.inputs)],
    ['gives', own(config.output), theirs(metadata.outputs)],
  ] as const) {
    const [one, other] = [here, there].map((list) => list.toSorted().join(', '));
    if (one !== other) return `${what} ${other} at the engine, and ${one} in its folder`;
  }
  return undefined;
}
