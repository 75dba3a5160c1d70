import type { Message } from '../../models/config/schema.ts';

type Shaped = { dims: readonly number[]; reshape: Message<'Reshape'> | undefined };

/** Whether a shape (without batch) is one the configuration allows. */
export const fits = (dims: readonly number[], shape: readonly number[]): boolean =>
  dims.length === shape.length && dims.every((dim, index) => dim === -1 || dim === shape[index]);

/** Free dimensions of `to` take, in order, the sizes that those of `from` have in `shape`. */
function carry(from: readonly number[], to: readonly number[], shape: readonly number[]): number[] {
  const free = shape.filter((_, index) => from[index] === -1);
  return to.map((dim) => (dim === -1 ? (free.shift() ?? 0) : dim));
}

/** A shape as the client gives it → as the network takes it. */
export const modelShape = ({ dims, reshape }: Shaped, shape: readonly number[]): number[] =>
  reshape ? carry(dims, reshape.shape, shape) : [...shape];

/** A shape as the network gives it → as the client gets it; undefined when the network broke its own description. */
export function clientShape({ dims, reshape }: Shaped, shape: readonly number[]): number[] | undefined {
  if (!fits(reshape ? reshape.shape : dims, shape)) return undefined;
  return reshape ? carry(reshape.shape, dims, shape) : [...shape];
}
