import { ok } from '../../../../shared/result.ts';
import type { Flow, Graph, TensorFacts } from '../archive/manifest.ts';
import { type BuildResult, problem } from '../problem.ts';

/** Synonyms of tensor names, in networks that are exported to be used together. */
const alias: Readonly<Record<string, string>> = {
  spec: 'spect',
  encoder_embeddings: 'last_hidden_states',
  FRAMES_IN: 'FRAMES',
};

/** Parses `ROLE.INPUT=OUTPUT,…`. */
function readWires(text: string): BuildResult<ReadonlyMap<string, string>> {
  const wires = new Map<string, string>();
  for (const one of text === '' ? [] : text.split(',')) {
    const found = /^([^.=]+\.[^=]+)=(.+)$/.exec(one.trim());
    if (!found) return problem('written', `wire: "${one}" is not ROLE.INPUT=OUTPUT`);
    wires.set(found[1] as string, found[2] as string);
  }
  return ok(wires);
}

/**
 * Chains networks: each input is the latest earlier output of that name, or comes from the caller. The
 * outputs of the last network are the answer.
 */
export function wireFlow(graphs: readonly Graph[], wire = ''): BuildResult<Flow> {
  const wires = readWires(wire);
  if (!wires.ok) return wires;
  const used = new Set<string>();
  const made = new Map<string, { tensor: TensorFacts; as: string }>();
  const [input, output, step]: [TensorFacts[], TensorFacts[], Flow['step']] = [[], [], []];
  for (const [at, graph] of graphs.entries()) {
    const [takes, gives]: [[string, string][], [string, string][]] = [[], []];
    for (const tensor of graph.input) {
      const key = `${graph.role}.${tensor.name}`;
      const mapped = wires.value.get(key);
      if (mapped !== undefined) used.add(key);
      const source =
        made.get(mapped ?? tensor.name) ?? (mapped === undefined ? made.get(alias[tensor.name] ?? '') : undefined);
      if (mapped !== undefined && !source)
        return problem('artifact', `wire: nothing before ${graph.role} gives ${mapped}`);
      if (source && !fits(source.tensor, tensor)) {
        return problem('artifact', `${graph.role} wants ${tensor.name} in another type or shape than it is made`);
      }
      if (!source && !input.some(({ name }) => name === tensor.name)) input.push(withoutRagged(tensor));
      takes.push([tensor.name, source?.as ?? tensor.name]);
    }
    const isLast = at === graphs.length - 1;
    for (const tensor of graph.output) {
      const as = isLast ? tensor.name : `${graph.role}_${tensor.name}`;
      gives.push([tensor.name, as]);
      if (isLast) output.push(withoutRagged(tensor));
      else made.set(tensor.name, { tensor, as });
    }
    step.push({ role: graph.role, input_map: Object.fromEntries(takes), output_map: Object.fromEntries(gives) });
  }
  const idle = [...wires.value.keys()].find((key) => !used.has(key));
  if (idle !== undefined) return problem('artifact', `wire: there is no ${idle}`);
  const both = output.find(({ name }) => input.some((one) => one.name === name));
  if (both) return problem('artifact', `${both.name} is an input and an output of the whole`);
  return ok({ suffix: '', input, output, step });
}

const withoutRagged = ({ ragged: _, ...tensor }: TensorFacts): TensorFacts => tensor;

const fits = (a: TensorFacts, b: TensorFacts): boolean =>
  a.data_type === b.data_type &&
  a.dims.length === b.dims.length &&
  a.dims.every((dim, at) => dim === -1 || b.dims[at] === -1 || dim === b.dims[at]);
