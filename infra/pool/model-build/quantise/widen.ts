import { makeWeight, type Node, nameOf, namesIn, numberAttribute, type OnnxModel } from '../onnx/graph.ts';
import { elements, readFloats, writeTensor } from '../onnx/tensor.ts';

/**
 * Converts 16-bit weights, which a node widens at load time, to 32 bits: an equal network, as the source and
 * the reference of 8-bit ones.
 */
export function widen(model: OnnxModel): OnnxModel {
  const halves = new Map(model.weights.filter(({ elem }) => elem === elements.FLOAT16).map((one) => [one.name, one]));
  const widens = ({ operator, domain, inputs }: Node) =>
    operator === 'Cast' && domain === '' && halves.has(inputs[0] ?? '');
  const casts = model.nodes.filter((node) => widens(node) && numberAttribute(node, 'to') === elements.FLOAT);
  const nodes = model.nodes.filter((node) => !casts.includes(node));
  const widened = casts.map(({ inputs, outputs }) => {
    const half = halves.get(inputs[0] as string);
    if (!half) throw new Error('a weight that was there is gone');
    return makeWeight(writeTensor(outputs[0] as string, half.dims, readFloats(half.bytes)));
  });
  return dropUnused({ ...model, nodes, weights: [...model.weights, ...widened] });
}

/** Removes weights that no node reads. */
export function dropUnused(model: OnnxModel): OnnxModel {
  const read = new Set<string>();
  for (const { bytes } of model.nodes) namesIn(bytes, read);
  const named = model.outputs.map((value) => nameOf(value));
  for (const name of named) read.add(name);
  const gone = new Set(model.weights.filter(({ name }) => !read.has(name)).map(({ name }) => name));
  return {
    ...model,
    weights: model.weights.filter(({ name }) => !gone.has(name)),
    inputs: model.inputs.filter((value) => !gone.has(nameOf(value))),
  };
}
