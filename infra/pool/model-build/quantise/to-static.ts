import { changeNode, makeNode, makeWeight, type Node, type OnnxModel, type Weight } from '../onnx/graph.ts';
import { writeTensor } from '../onnx/tensor.ts';
import type { Product } from './find-products.ts';
import { dropUnused } from './widen.ts';

/** Range of an activation. */
export interface Range {
  readonly low: number;
  readonly high: number;
}

interface Step {
  readonly scale: number;
  readonly zero: number;
}

/** Returns an unsigned 8-bit scale with an exact zero, so that padding stays zero. */
export function stepOf({ low, high }: Range): Step {
  const [from, to] = [Math.min(low, 0), Math.max(high, 0)];
  const scale = Math.fround(Math.max(to - from, 1e-8) / 255);
  return { scale, zero: Math.max(0, Math.min(255, Math.round(-from / scale))) };
}

/** Returns the tensors whose ranges `toStatic` requires. */
export const observed = (products: readonly Product[]): string[] => [
  ...new Set(
    products.flatMap(({ node, kind }) => [
      node.inputs[0] as string,
      // ONNX Runtime computes an integer convolution only between two roundings.
      ...(kind === 'convolution' ? [node.outputs[0] as string] : []),
    ]),
  ),
];

/**
 * Converts to 8-bit weights and activations with scales in the file (QDQ): pairs of QuantizeLinear and
 * DequantizeLinear around each product, which engines fuse with it.
 */
export function toStatic(
  model: OnnxModel,
  products: readonly Product[],
  ranges: ReadonlyMap<string, Range>,
): OnnxModel {
  const found = new Map(products.map((product) => [product.node, product]));
  const weights: Weight[] = [...model.weights];
  const named = new Set(weights.map(({ name }) => name));
  const add: Add = (bytes) => {
    const weight = makeWeight(bytes);
    if (!named.has(weight.name)) weights.push(weight);
    named.add(weight.name);
    return weight.name;
  };
  const steps = new Map([...ranges].map(([name, range]) => [name, stepOf(range)]));
  const rounded = new Set<string>();
  const nodes = model.nodes.flatMap((node) => {
    const product = found.get(node);
    if (!product) return [node];
    const x = node.inputs[0] as string;
    const first = rounded.has(x) ? [] : roundTrip(x, `${x}.rounded`, stepFor(steps, x), add);
    rounded.add(x);
    return [...first, ...computeRounded(product, steps, add)];
  });
  return dropUnused({ ...model, nodes, weights });
}

type Add = (bytes: Uint8Array) => string;

function stepFor(steps: ReadonlyMap<string, Step>, name: string): Step {
  const step = steps.get(name);
  if (!step) throw new Error(`no range of ${name}`);
  return step;
}

function roundTrip(from: string, to: string, { scale, zero }: Step, add: Add): Node[] {
  const about = [
    add(writeTensor(`${from}.step`, [], Float32Array.of(scale))),
    add(writeTensor(`${from}.zero`, [], Uint8Array.of(zero))),
  ];
  return [
    makeNode('QuantizeLinear', [from, ...about], [`${from}.uint8`]),
    makeNode('DequantizeLinear', [`${from}.uint8`, ...about], [to]),
  ];
}

function computeRounded(product: Product, steps: ReadonlyMap<string, Step>, add: Add): Node[] {
  const { node, kind, weight, rounded, bias } = product;
  const [x, y] = [node.inputs[0] as string, node.outputs[0] as string];
  const whole = add(writeTensor(`${weight}.int8`, rounded.dims, rounded.whole));
  const scale = add(writeTensor(`${weight}.scale`, [rounded.scales.length], rounded.scales));
  const zero = add(writeTensor(`${weight}.zero`, [rounded.scales.length], new Int8Array(rounded.scales.length)));
  const axis = kind === 'matrix' ? 1 : 0;
  const read = makeNode('DequantizeLinear', [whole, scale, zero], [`${y}.weight`], { axis });
  const given = [`${x}.rounded`, `${y}.weight`];
  if (kind === 'matrix') {
    if (!bias) return [read, makeNode('MatMul', given, [y])];
    const shift = add(writeTensor(`${bias.name}.shift`, [bias.values.length], bias.values));
    return [read, makeNode('MatMul', given, [`${y}.product`]), makeNode('Add', [`${y}.product`, shift], [y])];
  }
  return [
    read,
    ...(bias ? [readBias(product, stepFor(steps, x).scale, add)] : []),
    changeNode(node, { inputs: bias ? [...given, `${y}.bias`] : given, outputs: [`${y}.full`] }),
    ...roundTrip(`${y}.full`, y, stepFor(steps, y), add),
  ];
}

/** Writes the bias of a convolution as 32-bit integers on the scale of its sums. */
function readBias({ node, rounded, bias }: Product, step: number, add: Add): Node {
  const y = node.outputs[0] as string;
  const values = bias?.values ?? new Float32Array(0);
  const scales = Float32Array.from(rounded.scales, (scale) => scale * step);
  const whole = Int32Array.from(values, (value, at) => Math.round(value / (scales[at] as number)));
  const inputs = [
    add(writeTensor(`${y}.bias.int32`, [values.length], whole)),
    add(writeTensor(`${y}.bias.scale`, [values.length], scales)),
    add(writeTensor(`${y}.bias.zero`, [values.length], new Int32Array(values.length))),
  ];
  return makeNode('DequantizeLinear', inputs, [`${y}.bias`], { axis: 0 });
}
