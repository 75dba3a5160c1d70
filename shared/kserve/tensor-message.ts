import { z } from 'zod';
import { ok } from '../result.ts';
import { atMost } from './at-most.ts';
import type { Tail } from './body.ts';
import { type Datatype, datatypes } from './datatype.ts';
import { fault, type Read } from './fault.ts';
import { bytesFromJson, jsonFromBytes } from './json-data.ts';
import { INFER_NAME_CHARACTERS } from './limits.ts';
import { parameters } from './parameters.ts';
import { checkSize, checkTensor, type Tensor } from './tensor.ts';

/** Dimensions of a tensor: the limit of frameworks; error texts repeat shapes. */
export const DIMENSIONS_MAX = 32;

const names = Object.keys(datatypes) as [Datatype, ...Datatype[]];

export const tensorName = z.string().min(1).max(INFER_NAME_CHARACTERS);

/** A tensor inside a message: its contents are either `data` or `binary_data_size` bytes of the tail. */
export const tensorMessage = z.object({
  name: tensorName,
  shape: atMost(DIMENSIONS_MAX, 'dimensions', z.array(z.number().int().nonnegative())),
  datatype: z.enum(names),
  /** Its elements are looked at when they become bytes, and not before. */
  data: z.custom<readonly unknown[]>(Array.isArray, 'expected an array').optional(),
  parameters: parameters.optional(),
});

export function readTensor(message: z.infer<typeof tensorMessage>, tail: Tail): Read<Tensor> {
  const { name, datatype, shape, data } = message;
  const size = message.parameters?.binary_data_size;
  if (size === undefined) {
    if (data === undefined) return fault(`tensor '${name}' has neither data nor binary_data_size`);
    const bytes = bytesFromJson(name, datatype, data);
    return bytes.ok ? checkTensor({ name, datatype, shape, bytes: bytes.value }) : bytes;
  }
  if (data !== undefined) return fault(`tensor '${name}' has both data and binary_data_size`);
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    return fault(`tensor '${name}': parameter 'binary_data_size' must be a non-negative integer`);
  }
  const bytes = tail.take(name, size);
  return bytes.ok ? checkTensor({ name, datatype, shape, bytes: bytes.value }) : bytes;
}

/** The JSON of one tensor; in binary form it only announces its size. */
export function tensorJson(tensor: Tensor, binary: boolean): Read<string> {
  // The elements were checked when they were read.
  const checked = checkSize(tensor);
  if (!checked.ok) return checked;
  const { name, datatype, shape, bytes } = tensor;
  // Put together by hand, as a live stream infers three times a second.
  if (binary) {
    const size = `"parameters":{"binary_data_size":${bytes.byteLength}}`;
    return ok(`{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(',')}],${size}}`);
  }
  const head = { name, datatype, shape };
  const data = jsonFromBytes(tensor);
  return data.ok ? ok(`${JSON.stringify(head).slice(0, -1)},"data":${data.value}}`) : data;
}
