import { makeWeight, type Node, nameOf, namesIn, numberAttribute, type OnnxModel } from '../onnx/graph.ts';
import { elements, readFloats, writeTensor } from '../onnx/tensor.ts';

/**
 * Weights of 16 bits that a node widens when the network is loaded, as weights of 32 bits: the same network, which is what
 * 8 bits are compared with and made from.
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

/** Without the weights that nothing reads. */
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
