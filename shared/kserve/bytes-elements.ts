import { ok } from '../result.ts';
import { fault, type Read } from './fault.ts';

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

/** The elements as windows into `bytes`: nothing is copied. */
export function decodeBytesElements(bytes: Uint8Array): Read<Uint8Array[]> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elements: Uint8Array[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    if (at + 4 > bytes.byteLength) return fault(`element ${elements.length} ends inside its length`);
    const length = view.getUint32(at, true);
    if (at + 4 + length > bytes.byteLength) {
      return fault(`element ${elements.length} claims ${length} bytes, ${bytes.byteLength - at - 4} are left`);
    }
    elements.push(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return ok(elements);
}

export function countBytesElements(bytes: Uint8Array): Read<number> {
  const elements = decodeBytesElements(bytes);
  return elements.ok ? ok(elements.value.length) : elements;
}
