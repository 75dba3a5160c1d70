import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import type { Durations } from '../batch/job.ts';
import { keyOf } from '../batch/sequence-mark.ts';
import type { VersionStatistics } from '../batch/statistics.ts';
import type { Clock } from '../clock.ts';
import { type Call, type Checked, checkRequest } from '../model/check-request.ts';
import type { Answer, Served } from '../model/served.ts';
import { type EngineRefusal, refuse } from '../refuse.ts';
import { neededSteps, type Plan, type Step } from './plan.ts';
import { Turns } from './turns.ts';

/**
 * Finds the model of a step at each request, so that a reloaded model is used without reloading the ensemble.
 */
export type Find = (name: string, version: number | undefined) => Result<Served, EngineRefusal>;

export interface ServedEnsemble {
  readonly config: ModelConfig;
  readonly version: number;
  readonly plan: Plan;
  readonly find: Find;
  readonly statistics: VersionStatistics;
  readonly clock: Clock;
}

/** Serves an ensemble. It has no queue and no statistics of waiting: its steps have. */
export function serveEnsemble({ config, version, plan, find, statistics, clock }: ServedEnsemble): Served {
  const turns = new Turns();
  const keepers = () =>
    plan.steps.flatMap((step) => {
      const part = findStep(step, find);
      return part.ok && part.value.takesSequences ? [part.value] : [];
    });
  return {
    name: config.name,
    version,
    config,
    statistics,
    pending: 0,
    sequences: undefined,
    get takesSequences() {
      return keepers().length > 0;
    },
    breakSequence(mark) {
      for (const part of keepers()) part.breakSequence(mark);
    },
    async infer(call: Call): Promise<Answer> {
      const began = clock.now();
      const elapsedNs = () => (clock.now() - began) * 1000;
      const checked = checkRequest(config, call);
      const go = ({ outputs }: Checked) =>
        walk({ name: config.name, steps: neededSteps(plan, outputs), outputs }, call, find);
      const inTurn = (wanted: Checked) => {
        // Steps before the stateful one may have several instances, which would reorder a sequence.
        const { mark } = call;
        return mark && this.takesSequences ? turns.take(keyOf(mark), () => go(wanted)) : go(wanted);
      };
      const answer = checked.ok ? await inTurn(checked.value) : refuse('INVALID_ARG', checked.refusal.reason);
      if (!answer.ok && answer.refusal.failure === 'CANCELED' && call.mark) this.breakSequence(call.mark);
      if (answer.ok && checked.ok) {
        statistics.executed(checked.value.size, answer.value.durations);
        statistics.succeeded(checked.value.size, elapsedNs(), answer.value.durations);
      } else statistics.failed(answer.ok ? 'OTHER' : answer.refusal.failure, elapsedNs());
      return answer;
    },
    close: async () => {},
  };
}

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
}

/** Runs each step once its tensors exist; the first refusal stops steps that have not started. */
async function walk({ name, steps, outputs }: Walk, call: Call, find: Find): Promise<Answer> {
  const stop = new AbortController();
  const signal = call.signal ? AbortSignal.any([call.signal, stop.signal]) : stop.signal;
  const tensors = new Map(call.inputs.map((tensor) => [tensor.name, tensor]));
  const ready = new Map<string, Promise<void>>();
  let durations: Durations = { queue: 0, input: 0, infer: 0, output: 0 };
  let refusal: EngineRefusal | undefined;

  const start = async (step: Step): Promise<void> => {
    await Promise.all(Object.values(step.input_map).map((tensor) => ready.get(tensor)));
    if (refusal) return;
    const answer = await runStep(step, tensors, { ...call, signal }, find);
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

async function runStep(step: Step, tensors: ReadonlyMap<string, Tensor>, call: Call, find: Find): Promise<Answer> {
  const served = findStep(step, find);
  if (!served.ok) return served;
  const inputs = Object.entries(step.input_map).map(([name, tensor]) => ({ ...tensors.get(tensor)!, name }));
  // A model without sequences ignores the mark.
  const outputs = Object.keys(step.output_map);
  return served.value.infer({ ...call, inputs, outputs });
}
