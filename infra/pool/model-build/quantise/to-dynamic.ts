import { changeNode, makeNode, makeWeight, type Node, type OnnxModel, type Weight } from '../onnx/graph.ts';
import { elements, writeTensor } from '../onnx/tensor.ts';
import type { Product } from './find-products.ts';
import { dropUnused } from './widen.ts';

/**
 * Selects the products that pay off. ONNX Runtime's ConvInteger is slower than its convolutions in floating
 * point: with it the reference network took twice as long. So convolutions stay unless they have most of the
 * weights, for size.
 */
export function worthIt(products: readonly Product[]): readonly Product[] {
  const matrices = products.filter(({ kind }) => kind === 'matrix');
  const weightsOf = (some: readonly Product[]) => some.reduce((sum, { rounded }) => sum + rounded.whole.length, 0);
  return 2 * weightsOf(matrices) < weightsOf(products) ? products : matrices;
}

/**
 * Converts to 8-bit weights; activations are rounded to 8 bits at run time, with one scale for each tensor.
 * The nodes are in the order that ONNX Runtime fuses into one.
 */
export function toDynamic(model: OnnxModel, products: readonly Product[]): OnnxModel {
  const found = new Map(products.map((product) => [product.node, product]));
  const weights: Weight[] = [...model.weights];
  const named = new Set(weights.map(({ name }) => name));
  const add = (bytes: Uint8Array) => {
    const weight = makeWeight(bytes);
    if (!named.has(weight.name)) weights.push(weight);
    named.add(weight.name);
    return weight.name;
  };
  const rounded = new Set<string>();
  const nodes = model.nodes.flatMap((node) => {
    const product = found.get(node);
    if (!product) return [node];
    const x = node.inputs[0] as string;
    // All readers of an activation share its rounding.
    const first = rounded.has(x)
      ? []
      : [makeNode('DynamicQuantizeLinear', [x], [`${x}.uint8`, `${x}.step`, `${x}.zero`])];
    rounded.add(x);
    return [...first, ...computeWhole(product, add)];
  });
  return dropUnused({ ...model, nodes, weights });
}

function computeWhole({ node, kind, weight, rounded, bias }: Product, add: (bytes: Uint8Array) => string): Node[] {
  const [x, y] = [node.inputs[0] as string, node.outputs[0] as string];
  // After the batch, a convolution has its channels first and a matrix product last.
  const along = (count: number) => (kind === 'matrix' ? [count] : [count, ...rounded.dims.slice(2).map(() => 1)]);
  const whole = add(writeTensor(`${weight}.int8`, rounded.dims, rounded.whole));
  const scale = add(writeTensor(`${weight}.scale`, along(rounded.scales.length), rounded.scales));
  const given = [`${x}.uint8`, whole, `${x}.zero`];
  const product =
    kind === 'matrix'
      ? makeNode('MatMulInteger', given, [`${y}.sums`])
      : changeNode(node, { operator: 'ConvInteger', inputs: given, outputs: [`${y}.sums`] });
  const last = bias ? `${y}.product` : y;
  const nodes = [
    product,
    makeNode('Cast', [`${y}.sums`], [`${y}.wide`], { to: elements.FLOAT }),
    makeNode('Mul', [`${x}.step`, scale], [`${y}.scale`]),
    makeNode('Mul', [`${y}.wide`, `${y}.scale`], [last]),
  ];
  if (!bias) return nodes;
  const shift = add(writeTensor(`${bias.name}.shift`, along(bias.values.length), bias.values));
  return [...nodes, makeNode('Add', [last, shift], [y])];
}
