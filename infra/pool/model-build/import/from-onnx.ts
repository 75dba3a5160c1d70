import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import type { enums } from '../../models/config/schema.ts';
import type { Graph, TensorFacts } from '../archive/manifest.ts';
import { nameShape } from '../archive/manifest.ts';
import { openBlob } from '../blob.ts';
import type { OnnxFacts, OnnxValue } from '../onnx/read-onnx.ts';
import { type BuildResult, problem } from '../problem.ts';
import { findExternal, scanOnnx } from '../scan/onnx-file.ts';
import { type Draft, emptyDraft } from './draft.ts';

type DataType = (typeof enums.DataType)[number];

/** Triton's types by TensorProto.DataType. Complex numbers and floats of 8 bits have none. */
const dataTypes = new Map<number, DataType>([
  [1, 'TYPE_FP32'],
  [2, 'TYPE_UINT8'],
  [3, 'TYPE_INT8'],
  [4, 'TYPE_UINT16'],
  [5, 'TYPE_INT16'],
  [6, 'TYPE_INT32'],
  [7, 'TYPE_INT64'],
  [8, 'TYPE_STRING'],
  [9, 'TYPE_BOOL'],
  [10, 'TYPE_FP16'],
  [11, 'TYPE_FP64'],
  [12, 'TYPE_UINT32'],
  [13, 'TYPE_UINT64'],
  [16, 'TYPE_BF16'],
]);

/** Returns the precision of most of the weights. */
export function precisionOf({ weights }: OnnxFacts): Graph['precision'] {
  const count = (...types: number[]) => types.reduce((sum, type) => sum + (weights.get(type) ?? 0), 0);
  const [eight, sixteen, more] = [count(2, 3, 17, 18, 19, 20, 21, 22), count(10, 16), count(1, 11)];
  if (eight > sixteen && eight > more) return 'int8';
  return sixteen > more ? 'fp16' : 'fp32';
}

/** Scanned files of one network, with the facts that a server needs. */
export interface Network {
  readonly facts: OnnxFacts;
  readonly artifact: string;
  readonly external: readonly string[];
  readonly sources: Draft['sources'];
}

export async function readNetwork(file: string, role: string): Promise<BuildResult<Network>> {
  const opened = await openBlob(file, file).catch(() => undefined);
  if (!opened) return problem('unreadable', `${file} cannot be read`);
  try {
    const facts = await scanOnnx(opened.blob);
    if (!facts.ok) return facts;
    const external = await findExternal(file, facts.value);
    if (!external.ok) return external;
    // Weight files keep their names, since the network refers to them.
    const artifact = `${role}/model.onnx`;
    const beside = external.value.map((location) => `${role}/${location}`);
    const unfit = [role, ...beside].find((name) => !nameShape.safeParse(name).success || name === artifact);
    if (unfit !== undefined) return problem('unsupported', `${unfit} is no name for an artifact`);
    return ok({
      facts: facts.value,
      artifact,
      external: beside,
      sources: [
        { name: artifact, file },
        ...external.value.map((location) => ({
          name: `${role}/${location}`,
          file: path.join(path.dirname(file), location),
        })),
      ],
    });
  } finally {
    await opened.close();
  }
}

const isFree = (dim: number | string | undefined): boolean => typeof dim === 'string' || dim === -1;

function tensorsOf(values: readonly OnnxValue[], batched: boolean): BuildResult<TensorFacts[]> {
  const tensors: TensorFacts[] = [];
  for (const { name, elem, dims } of values) {
    const type = dataTypes.get(elem);
    if (!type) return problem('unsupported', `the tensor ${name} has a type that no server takes`);
    const own = dims.slice(batched ? 1 : 0).map((dim) => (typeof dim === 'number' ? dim : -1));
    tensors.push({ name, data_type: type, dims: own });
  }
  return ok(tensors);
}

/** Imports an ONNX file as one graph. Its first dimension is the batch when it is free in every tensor. */
export async function importOnnx(file: string, role: string): Promise<BuildResult<Draft>> {
  const network = await readNetwork(file, role);
  if (!network.ok) return network;
  const { facts, artifact, external, sources } = network.value;
  const batched = [...facts.inputs, ...facts.outputs].every(({ dims }) => isFree(dims[0]));
  const [input, output] = [tensorsOf(facts.inputs, batched), tensorsOf(facts.outputs, batched)];
  if (!input.ok) return input;
  if (!output.ok) return output;
  const graph: Graph = {
    role,
    artifact,
    external: [...external],
    batched,
    precision: precisionOf(facts),
    input: input.value,
    output: output.value,
    batch_input: [],
    state: [],
    control: [],
  };
  const advice = batched ? [] : [`${file} takes one request at a time: export it with a free first dimension to batch`];
  return ok({ ...emptyDraft, graphs: [graph], sources, advice });
}
