import { type Attributes, makeNode } from '../onnx/graph.ts';
import { elements, type Numbers, writeTensor } from '../onnx/tensor.ts';
import { bytesField, integerField, joinBytes, messageField, textField } from '../onnx/write-wire.ts';
import { roundWeights, turn } from '../quantise/round-weights.ts';
import type { Matrix } from './read-ctranslate.ts';

/** Input or output of a graph; a dimension is a number or a name. */
export interface GraphValue {
  readonly name: string;
  readonly elem: number;
  readonly dims?: readonly (number | string)[];
}

const valueInfo = ({ name, elem, dims }: GraphValue): Uint8Array => {
  const shape = dims?.map((dim) =>
    messageField(1, [typeof dim === 'number' ? integerField(1, dim) : textField(2, dim)]),
  );
  const type = messageField(1, [integerField(1, elem), ...(shape ? [messageField(2, shape)] : [])]);
  return joinBytes([textField(1, name), messageField(2, [type])]);
};

const BOOL = 9;
export const types = { ...elements, BOOL } as const;

/**
 * Largest weight, all of 8 bits: with 7 bits a quarter more words are wrong. Processors without dot-product
 * instructions may then cut off a few of the largest sums.
 */
const WEIGHT_LIMIT = 127;

/** Builds a graph of standard operators. Names begin with `prefix`, so that a nested graph shadows none. */
export function createGraphBuilder(prefix: string) {
  const nodes: Uint8Array[] = [];
  const weights = new Map<string, Uint8Array>();
  const rounded = new Map<string, string[]>();

  function ops(operator: string, inputs: readonly string[], count: number, attributes: Attributes = {}): string[] {
    const outputs = Array.from({ length: count }, (_, i) => `${prefix}${operator}_${nodes.length}_${i}`);
    nodes.push(makeNode(operator, inputs, outputs, attributes).bytes);
    return outputs;
  }
  const op = (operator: string, inputs: readonly string[], attributes?: Attributes): string =>
    ops(operator, inputs, 1, attributes)[0] as string;

  function tensor(key: string, dims: readonly number[], values: () => Numbers): string {
    const name = `${prefix}${key}`;
    if (!weights.has(name)) weights.set(name, writeTensor(name, dims, values()));
    return name;
  }
  const matrix = (key: string, { dims, values }: Matrix) => tensor(key, dims, () => values);
  /** 64-bit integers: one is a scalar, a list has one dimension. */
  const ints = (value: number | readonly number[]) => {
    const list = typeof value === 'number' ? [value] : value;
    const dims = typeof value === 'number' ? [] : [list.length];
    return tensor(`i${dims.length}:${list}`, dims, () => BigInt64Array.from(list, BigInt));
  };
  const float = (value: number) => tensor(`f:${value}`, [], () => Float32Array.of(value));

  /** Product of `x` with integer weights of shape [in, out]. */
  function product(x: string, weight: string, scale: string): string {
    const whole = rounded.get(x) ?? ops('DynamicQuantizeLinear', [x], 3);
    rounded.set(x, whole);
    const [values = '', step = '', zero = ''] = whole;
    const wide = op('Cast', [op('MatMulInteger', [values, weight, zero])], { to: types.FLOAT });
    return op('Mul', [wide, op('Mul', [step, scale])]);
  }

  /** Weights in 8 bits of a matrix [out, in], turned to [in, out], and their scales. */
  function whole(key: string, { dims: [out = 0, input = 0], values }: Matrix): { weight: string; scale: string } {
    if (weights.has(`${prefix}${key}.int8`)) return { weight: `${prefix}${key}.int8`, scale: `${prefix}${key}.scale` };
    const { whole: numbers, scales } = roundWeights(turn(values, [out, input]), [input, out], 1, WEIGHT_LIMIT);
    return {
      weight: tensor(`${key}.int8`, [input, out], () => numbers),
      scale: tensor(`${key}.scale`, [out], () => scales),
    };
  }

  return {
    op,
    ops,
    tensor,
    matrix,
    ints,
    float,
    product,
    whole,
    /** Adds a node whose outputs have names of their own. */
    named(operator: string, inputs: readonly string[], outputs: readonly string[], attributes: Attributes = {}) {
      nodes.push(makeNode(operator, inputs, outputs, attributes).bytes);
    },
    /** Returns a GraphProto. */
    finish(name: string, inputs: readonly GraphValue[], outputs: readonly GraphValue[]): Uint8Array {
      return joinBytes([
        ...nodes.map((node) => bytesField(1, node)),
        textField(2, name),
        ...[...weights.values()].map((weight) => bytesField(5, weight)),
        ...inputs.map((value) => bytesField(11, valueInfo(value))),
        ...outputs.map((value) => bytesField(12, valueInfo(value))),
      ]);
    },
  };
}

export type GraphBuilder = ReturnType<typeof createGraphBuilder>;

/** Versions of the file format and of the standard operators. */
const IR = 9;
const OPSET = 18;

/** Returns a ModelProto of one graph. */
export const modelOf = (graph: Uint8Array): Uint8Array =>
  joinBytes([integerField(1, IR), bytesField(7, graph), messageField(8, [textField(1, ''), integerField(2, OPSET)])]);
