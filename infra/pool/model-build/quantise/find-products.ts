import { type Node, numberAttribute, type OnnxModel, type Weight } from '../onnx/graph.ts';
import { countOf, elements, readFloats } from '../onnx/tensor.ts';
import { type Rounded, roundWeights, turn } from './round-weights.ts';

/** Smallest number of weights that is worth the additional nodes. */
export const SMALLEST = 512;

/** A product with constant weights, which 8 bits can compute. */
export interface Product {
  readonly node: Node;
  readonly kind: 'matrix' | 'convolution';
  readonly weight: string;
  readonly rounded: Rounded;
  /** Added to the product, one for each channel of the output. */
  readonly bias?: { readonly name: string; readonly values: Float32Array };
}

/**
 * Finds the products that become integer products: MatMul and Gemm with a constant matrix on the right, and
 * convolutions. Softmax, normalisations and products of two activations (attention itself) stay in floating
 * point.
 */
export function findProducts({ nodes, weights }: OnnxModel): Product[] {
  const constants = new Map(weights.map((weight) => [weight.name, weight]));
  return nodes.flatMap((node) => {
    const weight = constants.get(node.inputs[1] ?? '');
    if (!weight || node.domain !== '' || weight.elem !== elements.FLOAT || weight.elsewhere) return [];
    if (countOf(weight.dims) < SMALLEST) return [];
    const round = readers[node.operator];
    const bias = constants.get(node.inputs[2] ?? '');
    // A computed bias, or one without a number for each channel, is added in floating point.
    if (!round || (node.inputs[2] !== undefined && node.inputs[2] !== '' && !bias)) return [];
    const found = round(node, weight);
    if (!found || (bias && countOf(bias.dims) !== found.rounded.scales.length)) return [];
    return [
      {
        node,
        weight: weight.name,
        ...found,
        ...(bias && { bias: { name: bias.name, values: readFloats(bias.bytes) } }),
      },
    ];
  });
}

type Reader = (node: Node, weight: Weight) => Pick<Product, 'kind' | 'rounded'> | undefined;

const matrix = (values: Float32Array, rows: number, columns: number) => ({
  kind: 'matrix' as const,
  rounded: roundWeights(values, [rows, columns], 1),
});

const readers: Readonly<Record<string, Reader>> = {
  MatMul(_, { dims: [rows, columns, ...more], bytes }) {
    if (rows === undefined || columns === undefined || more.length > 0) return undefined;
    return matrix(readFloats(bytes), rows, columns);
  },
  Gemm(node, { dims: [rows, columns], bytes }) {
    const plain = (numberAttribute(node, 'alpha') ?? 1) === 1 && (numberAttribute(node, 'beta') ?? 1) === 1;
    if (!plain || numberAttribute(node, 'transA') || rows === undefined || columns === undefined) return undefined;
    const values = readFloats(bytes);
    if (!numberAttribute(node, 'transB')) return matrix(values, rows, columns);
    return matrix(turn(values, [rows, columns]), columns, rows);
  },
  Conv: (_, { dims, bytes }) => ({ kind: 'convolution', rounded: roundWeights(readFloats(bytes), dims, 0) }),
};
