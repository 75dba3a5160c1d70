import { countOf } from '../onnx/tensor.ts';

/**
 * Largest weight, 7 bits: with 8-bit activations two products always fit the 16-bit sums of processors
 * without dot-product instructions (255 · 63 · 2 < 32768), so that every processor gives the same result.
 */
const WEIGHT_LIMIT = 63;

export interface Rounded {
  readonly dims: readonly number[];
  readonly whole: Int8Array;
  /** Scales, one for each channel of the output. */
  readonly scales: Float32Array;
}

/** Rounds weights to integers of at most `limit` around zero, with a scale for each index along `axis`. */
export function roundWeights(
  values: Float32Array,
  dims: readonly number[],
  axis: number,
  limit = WEIGHT_LIMIT,
): Rounded {
  const channels = dims[axis] as number;
  const inner = countOf(dims.slice(axis + 1));
  // An index loop: iterators would take most of the time of millions of numbers.
  const channelOf = (at: number) => Math.floor(at / inner) % channels;
  const most = new Float64Array(channels);
  for (let at = 0; at < values.length; at++) {
    const channel = channelOf(at);
    most[channel] = Math.max(most[channel] as number, Math.abs(values[at] as number));
  }
  // A channel of zeroes needs a scale above 0.
  const scales = Float32Array.from(most, (peak) => Math.max(peak, 1e-8) / limit);
  const whole = new Int8Array(values.length);
  for (let at = 0; at < values.length; at++) {
    const rounded = Math.round((values[at] as number) / (scales[channelOf(at)] as number));
    whole[at] = Math.max(-limit, Math.min(limit, rounded));
  }
  return { dims, whole, scales };
}

/** Transposes a matrix. */
export function turn(values: Float32Array, [rows, columns]: readonly [number, number]): Float32Array {
  const turned = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++)
      turned[column * rows + row] = values[row * columns + column] as number;
  }
  return turned;
}
