import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import type { Durations } from '../batch/job.ts';
import { keyOf, type Mark } from '../batch/sequence-mark.ts';
import type { VersionStatistics } from '../batch/statistics.ts';
import type { Clock } from '../clock.ts';
import { type Call, type Checked, checkRequest } from '../model/check-request.ts';
import type { Answer, Lease, Served } from '../model/served.ts';
import { type EngineRefusal, refuse } from '../refuse.ts';
import { neededSteps, type Plan, type Step } from './plan.ts';
import type { Turns } from './turns.ts';

/** Finds the model of a step for each request, so that the ensemble uses a reloaded model. */
export type Find = (name: string, version: number | undefined) => Result<Served, EngineRefusal>;

export interface ServedEnsemble {
  readonly config: ModelConfig;
  readonly version: number;
  readonly plan: Plan;
  readonly find: Find;
  /** Order of each sequence; it outlives this version, which every load in the repository replaces. */
  readonly turns: Turns;
  readonly statistics: VersionStatistics;
  readonly clock: Clock;
}

/** Serves an ensemble. It has no queue and no statistics of waiting: its steps have. */
export function serveEnsemble(ensemble: ServedEnsemble): Served {
  const { config, version, plan, find, turns, statistics, clock } = ensemble;

  /** Leases the steps' models at once: a model that is unloaded meanwhile still serves this request. */
  function lease(): Lease {
    const parts: Parts = new Map(
      plan.steps.map((step) => {
        const found = findStep(step, find);
        return [step, found.ok ? ok(found.value.lease()) : found];
      }),
    );
    const leased = [...parts.values()].flatMap((part) => (part.ok ? [part.value] : []));
    const keepers = leased.filter((part) => part.takesSequences);
    const takesSequences = keepers.length > 0;
    const breakSequence = (mark: Mark) => {
      for (const part of keepers) part.breakSequence(mark);
    };
    return {
      takesSequences,
      breakSequence,
      async infer(call: Call): Promise<Answer> {
        const began = clock.now();
        const elapsedNs = () => (clock.now() - began) * 1000;
        const checked = checkRequest(config, call);
        const go = ({ outputs }: Checked) =>
          walk({ name: config.name, steps: neededSteps(plan, outputs), outputs, parts }, call);
        const inTurn = (wanted: Checked) => {
          // Steps before the stateful one may have several instances, which would reorder a sequence.
          const { mark } = call;
          return mark && takesSequences ? turns.take(keyOf(mark), () => go(wanted)) : go(wanted);
        };
        const answer = checked.ok ? await inTurn(checked.value) : refuse('INVALID_ARG', checked.refusal.reason);
        if (!answer.ok && answer.refusal.failure === 'CANCELED' && call.mark) breakSequence(call.mark);
        if (answer.ok && checked.ok) {
          statistics.executed(checked.value.size, answer.value.durations);
          statistics.succeeded(checked.value.size, elapsedNs(), answer.value.durations);
        } else statistics.failed(answer.ok ? 'OTHER' : answer.refusal.failure, elapsedNs());
        return answer;
      },
      release() {
        for (const part of leased) part.release();
      },
    };
  }

  return {
    name: config.name,
    version,
    config,
    statistics,
    pending: 0,
    sequences: undefined,
    get takesSequences() {
      return plan.steps.some((step) => {
        const part = findStep(step, find);
        return part.ok && part.value.takesSequences;
      });
    },
    memoryBytes: 0,
    lease,
    async infer(call: Call): Promise<Answer> {
      const leased = lease();
      try {
        return await leased.infer(call);
      } finally {
        leased.release();
      }
    },
    close: async () => {},
  };
}

/** Leases of the steps' models, or the refusals of missing ones. */
type Parts = ReadonlyMap<Step, Result<Lease, EngineRefusal>>;

/** Adds the work of steps, sequential or parallel; none of it is waiting. */
const add = (a: Durations, b: Durations): Durations => ({
  queue: 0,
  input: a.input + b.input,
  infer: a.infer + b.infer,
  output: a.output + b.output,
});

interface Walk {
  /** Name of the ensemble. */
  readonly name: string;
  readonly steps: readonly Step[];
  readonly outputs: readonly string[];
  readonly parts: Parts;
}

/** Runs each step once its tensors exist; the first refusal stops steps that have not started. */
async function walk({ name, steps, outputs, parts }: Walk, call: Call): Promise<Answer> {
  const stop = new AbortController();
  const signal = call.signal ? AbortSignal.any([call.signal, stop.signal]) : stop.signal;
  const tensors = new Map(call.inputs.map((tensor) => [tensor.name, tensor]));
  const ready = new Map<string, Promise<void>>();
  let durations: Durations = { queue: 0, input: 0, infer: 0, output: 0 };
  let refusal: EngineRefusal | undefined;

  const start = async (step: Step): Promise<void> => {
    await Promise.all(Object.values(step.input_map).map((tensor) => ready.get(tensor)));
    if (refusal) return;
    const answer = await runStep(step, tensors, { ...call, signal }, parts);
    if (!answer.ok) {
      refusal ??= answer.refusal;
      stop.abort();
      return;
    }
    durations = add(durations, answer.value.durations);
    for (const tensor of answer.value.outputs) {
      const target = step.output_map[tensor.name]!;
      tensors.set(target, { ...tensor, name: target });
    }
  };
  for (const step of steps) {
    const done = start(step);
    for (const tensor of Object.values(step.output_map)) ready.set(tensor, done);
  }
  await Promise.all(ready.values());
  if (refusal) return refuse(refusal.code, `in ensemble '${name}', ${refusal.text}`, refusal.failure);
  return ok({ outputs: outputs.map((output) => tensors.get(output)!), durations });
}

const findStep = ({ model_name, model_version }: Step, find: Find) =>
  find(model_name, model_version > 0 ? model_version : undefined);

async function runStep(step: Step, tensors: ReadonlyMap<string, Tensor>, call: Call, parts: Parts): Promise<Answer> {
  const part = parts.get(step)!;
  if (!part.ok) return part;
  const inputs = Object.entries(step.input_map).map(([name, tensor]) => ({ ...tensors.get(tensor)!, name }));
  // A model without sequences ignores the mark.
  const outputs = Object.keys(step.output_map);
  return part.value.infer({ ...call, inputs, outputs });
}
