import { ok } from '../result.ts';
import { fault, type Read } from './fault.ts';

/**
 * Elements of a BYTES tensor: the texts of a large batch. Each costs time of its own, so many empty ones
 * exceed their bytes.
 */
export const BYTES_ELEMENTS_MAX = 65_536;

/** BYTES tensors on the wire: for each element its length as an unsigned 32-bit little-endian number, then the bytes. */
export function encodeBytesElements(elements: readonly Uint8Array[]): Uint8Array {
  const total = elements.reduce((sum, element) => sum + 4 + element.byteLength, 0);
  const out = new Uint8Array(total);
  const view = new DataView(out.buffer);
  let at = 0;
  for (const element of elements) {
    view.setUint32(at, element.byteLength, true);
    out.set(element, at + 4);
    at += 4 + element.byteLength;
  }
  return out;
}

/**
 * Returns the end offset of the element that begins at `at`. No Result: the call runs once for each of
 * millions.
 */
function elementEnd(view: DataView, at: number, index: number): number | ReturnType<typeof fault> {
  const left = view.byteLength - at - 4;
  if (left < 0) return fault(`element ${index} ends inside its length`);
  const length = view.getUint32(at, true);
  return length > left ? fault(`element ${index} claims ${length} bytes, ${left} are left`) : at + 4 + length;
}

/** The elements as windows into `bytes`: nothing is copied. */
export function decodeBytesElements(bytes: Uint8Array): Read<Uint8Array[]> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elements: Uint8Array[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    const end = elementEnd(view, at, elements.length);
    if (typeof end !== 'number') return end;
    elements.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return ok(elements);
}

export function countBytesElements(bytes: Uint8Array): Read<number> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let count = 0;
  for (let at = 0; at < bytes.byteLength; count++) {
    const end = elementEnd(view, at, count);
    if (typeof end !== 'number') return end;
    at = end;
  }
  return ok(count);
}

/** Refuses more elements than a tensor may have. */
export function boundElements(count: number): Read<number> {
  const most = BYTES_ELEMENTS_MAX;
  return count > most ? fault(`over ${most} elements`) : ok(count);
}
