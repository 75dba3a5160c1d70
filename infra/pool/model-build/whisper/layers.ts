// Layers that the encoder and the decoder of Whisper share.
import type { GraphBuilder } from './graph-builder.ts';
import type { Matrix } from './read-ctranslate.ts';

/** Shape and weights of a Whisper. */
export interface Whisper {
  readonly weights: ReadonlyMap<string, Matrix>;
  readonly width: number;
  readonly heads: number;
  readonly encoderLayers: number;
  readonly decoderLayers: number;
}

export function weightOf({ weights }: Whisper, name: string): Matrix {
  const found = weights.get(name);
  if (!found) throw new Error(`the model has no ${name}`);
  return found;
}

export function createLayers(graph: GraphBuilder, whisper: Whisper) {
  const { width, heads } = whisper;
  const { op, ints, float, matrix } = graph;
  const size = width / heads;

  function linear(x: string, name: string): string {
    const { weight, scale } = graph.whole(name, weightOf(whisper, `${name}/weight`));
    const y = graph.product(x, weight, scale);
    const bias = whisper.weights.get(`${name}/bias`);
    return bias ? op('Add', [y, matrix(`${name}/bias`, bias)]) : y;
  }
  const normalise = (x: string, name: string) =>
    op(
      'LayerNormalization',
      [x, ...['gamma', 'beta'].map((part) => matrix(`${name}/${part}`, weightOf(whisper, `${name}/${part}`)))],
      { axis: -1, epsilon: { float: 1e-5 } },
    );
  function gelu(x: string): string {
    const error = op('Erf', [op('Mul', [x, float(Math.SQRT1_2)])]);
    return op('Mul', [op('Mul', [x, float(0.5)]), op('Add', [error, float(1)])]);
  }
  const split = (x: string) => op('Transpose', [op('Reshape', [x, ints([0, 0, heads, size])])], { perm: [0, 2, 1, 3] });
  const join = (x: string) => op('Reshape', [op('Transpose', [x], { perm: [0, 2, 1, 3] }), ints([0, 0, width])]);
  /** Shares of the keys for each query. */
  const shares = (q: string, k: string) => {
    const scaled = op('Mul', [q, float(size ** -0.5)]);
    return op('Softmax', [op('MatMul', [scaled, op('Transpose', [k], { perm: [0, 1, 3, 2] })])], { axis: -1 });
  };
  const feedForward = (x: string, name: string) =>
    op('Add', [x, linear(gelu(linear(normalise(x, `${name}/layer_norm`), `${name}/linear_0`)), `${name}/linear_1`)]);

  return { linear, normalise, gelu, split, join, shares, feedForward };
}
