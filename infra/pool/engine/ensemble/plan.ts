import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';
import type { Message, ModelConfig } from '../../models/config/schema.ts';

export type Step = Message<'Step'>;

/** Steps of an ensemble in an order in which every tensor is written before it is read. */
export interface Plan {
  readonly steps: readonly Step[];
}

interface Wire {
  readonly datatype: string;
  readonly dims: readonly number[];
}

type Io = Message<'Input'> | Message<'Output'>;
const wireOf = (config: ModelConfig, { data_type, dims }: Io): Wire => ({
  datatype: data_type,
  dims: config.max_batch_size > 0 ? [-1, ...dims] : dims,
});

const agree = (a: Wire, b: Wire): boolean =>
  a.datatype === b.datatype &&
  a.dims.length === b.dims.length &&
  a.dims.every((dim, index) => dim === -1 || b.dims[index] === -1 || dim === b.dims[index]);

/**
 * Types of the ensemble's tensors, joined from their writer and readers; the first disagreement is the error.
 */
class Wires {
  readonly #known = new Map<string, Wire & { from: string }>();
  join(tensor: string, wire: Wire, from: string): string | undefined {
    const other = this.#known.get(tensor);
    if (!other) this.#known.set(tensor, { ...wire, from });
    if (!other || agree(other, wire)) return undefined;
    const show = ({ datatype, dims }: Wire) => `${datatype} [${dims}]`;
    return `ensemble tensor '${tensor}' is ${show(other)} in ${other.from} and ${show(wire)} in ${from}`;
  }
}

/**
 * Checks an ensemble against its models and orders its steps. `configOf` returns the configurations of ready
 * models; the checks are those of Triton when it loads an ensemble.
 */
export function planEnsemble(config: ModelConfig, configOf: (step: Step) => ModelConfig | undefined): Read<Plan> {
  const steps = config.ensemble_scheduling?.step ?? [];
  const wires = new Wires();
  const written = new Set(config.input.map(({ name }) => name));
  const self = `ensemble '${config.name}'`;
  for (const tensor of [...config.input, ...config.output]) wires.join(tensor.name, wireOf(config, tensor), self);
  for (const step of steps) {
    const model = configOf(step);
    if (!model) return fault(`${self} depends on '${step.model_name}' which has no loaded version`);
    const complaint = checkStep(config, step, model, { wires, written });
    if (complaint !== undefined) return fault(`in ${self}, ${complaint}`);
  }
  const missing = config.output.find(({ name }) => !written.has(name));
  if (missing) return fault(`in ${self}, no step writes the output '${missing.name}'`);
  return order(config, steps, written);
}

interface Tensors {
  readonly wires: Wires;
  /** Names of the ensemble tensors that have a value. */
  readonly written: Set<string>;
}

function checkStep(ensemble: ModelConfig, step: Step, model: ModelConfig, { wires, written }: Tensors) {
  const name = step.model_name;
  if (ensemble.max_batch_size > model.max_batch_size) {
    return `the maximum batch size is ${ensemble.max_batch_size}, but model '${name}' only allows ${model.max_batch_size}`;
  }
  for (const [input, tensor] of Object.entries(step.input_map)) {
    const found = model.input.find((known) => known.name === input);
    if (!found) return `ensemble tensor '${tensor}' is mapping to non-existing input '${input}' in model '${name}'`;
    const clash = wires.join(tensor, wireOf(model, found), `model '${name}'`);
    if (clash !== undefined) return clash;
  }
  const unmapped = model.input.find((input) => !Object.hasOwn(step.input_map, input.name));
  if (unmapped) return `input '${unmapped.name}' in model '${name}' is not mapped to any ensemble tensor`;
  for (const [output, tensor] of Object.entries(step.output_map)) {
    const found = model.output.find((known) => known.name === output);
    if (!found) return `ensemble tensor '${tensor}' is mapped from non-existing output '${output}' in model '${name}'`;
    if (written.has(tensor)) return `ensemble tensor '${tensor}' is written twice`;
    written.add(tensor);
    const clash = wires.join(tensor, wireOf(model, found), `model '${name}'`);
    if (clash !== undefined) return clash;
  }
  return undefined;
}

function order({ name, input }: ModelConfig, steps: readonly Step[], written: ReadonlySet<string>): Read<Plan> {
  const have = new Set(input.map((tensor) => tensor.name));
  const waiting = new Set(steps);
  const ordered: Step[] = [];
  while (waiting.size > 0) {
    const next = [...waiting].find((step) => Object.values(step.input_map).every((tensor) => have.has(tensor)));
    if (!next) {
      const [stuck] = waiting;
      const tensor = Object.values(stuck!.input_map).find((wanted) => !have.has(wanted))!;
      return fault(
        written.has(tensor)
          ? `in ensemble '${name}', the steps form a circle at tensor '${tensor}'`
          : `in ensemble '${name}', no step writes the tensor '${tensor}' that model '${stuck!.model_name}' reads`,
      );
    }
    waiting.delete(next);
    ordered.push(next);
    for (const tensor of Object.values(next.output_map)) have.add(tensor);
  }
  return ok({ steps: ordered });
}

/** Returns the steps that these outputs depend on, in order. */
export function neededSteps({ steps }: Plan, outputs: readonly string[]): Step[] {
  const wanted = new Set(outputs);
  const needed: Step[] = [];
  for (const step of [...steps].reverse()) {
    if (!Object.values(step.output_map).some((tensor) => wanted.has(tensor))) continue;
    needed.unshift(step);
    for (const tensor of Object.values(step.input_map)) wanted.add(tensor);
  }
  return needed;
}
