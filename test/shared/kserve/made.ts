import type { Body } from '../../../shared/kserve/body.ts';
import { encodeBytesElements } from '../../../shared/kserve/bytes-elements.ts';
import { type Datatype, datatypes } from '../../../shared/kserve/datatype.ts';
import type { Tensor } from '../../../shared/kserve/tensor.ts';

/** Types with elements of one size. */
export const fixedDatatypes = (Object.keys(datatypes) as Datatype[]).filter((name) => name !== 'BYTES');

/** A body as received. */
export const joinChunks = ({ chunks }: Body): Buffer<ArrayBuffer> => Buffer.concat(chunks);

/** A tensor of texts or byte strings. */
export function bytesTensor(
  name: string,
  elements: readonly (string | Uint8Array)[],
  shape: readonly number[] = [elements.length],
): Tensor {
  const raw = elements.map((element) => (typeof element === 'string' ? new TextEncoder().encode(element) : element));
  return { name, datatype: 'BYTES', shape, bytes: encodeBytesElements(raw) };
}
