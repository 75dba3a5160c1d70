import type { Message } from '../../models/config/schema.ts';

type Shaped = { dims: readonly number[]; reshape: Message<'Reshape'> | undefined };

/** Reports whether the configuration allows a shape (without batch). */
export const fits = (dims: readonly number[], shape: readonly number[]): boolean =>
  dims.length === shape.length && dims.every((dim, index) => dim === -1 || dim === shape[index]);

/** Fills the free dimensions of `to`, in order, with the sizes that those of `from` have in `shape`. */
function carry(from: readonly number[], to: readonly number[], shape: readonly number[]): number[] {
  const free = shape.filter((_, index) => from[index] === -1);
  return to.map((dim) => (dim === -1 ? (free.shift() ?? 0) : dim));
}

/** Converts a client's shape to the network's. */
export const modelShape = ({ dims, reshape }: Shaped, shape: readonly number[]): number[] =>
  reshape ? carry(dims, reshape.shape, shape) : [...shape];

/** Converts the network's shape to the client's; undefined when the network contradicts its description. */
export function clientShape({ dims, reshape }: Shaped, shape: readonly number[]): number[] | undefined {
  if (!fits(reshape ? reshape.shape : dims, shape)) return undefined;
  return reshape ? carry(reshape.shape, dims, shape) : [...shape];
}
