import { widenHalf } from '../onnx/tensor.ts';

/** A weight in 32 bits, row-major. */
export interface Matrix {
  readonly dims: readonly number[];
  readonly values: Float32Array;
}

/** Version of the file format that is read. */
const VERSION = 6;
/** Element types by number. */
const FLOAT32 = 0;
const FLOAT16 = 4;

/** 16-bit numbers in 32 bits, by their bits: a table is ten times as fast as computing each. */
const halves = Float32Array.from({ length: 65_536 }, (_, bits) => widenHalf(bits));

/** Reads the floating-point weights of a CTranslate2 `model.bin`. Throws on other files. */
export function readCtranslate(bytes: Uint8Array): ReadonlyMap<string, Matrix> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const skip = (count: number) => {
    at += count;
    return at - count;
  };
  const u32 = () => view.getUint32(skip(4), true);
  const text = () => {
    const length = view.getUint16(skip(2), true);
    const from = skip(length);
    // With a zero at its end.
    return new TextDecoder().decode(bytes.subarray(from, at - 1));
  };
  if (u32() !== VERSION) throw new Error('no CTranslate2 model of a known version');
  text();
  u32();
  const weights = new Map<string, Matrix>();
  for (let left = u32(); left > 0; left--) {
    const name = text();
    const rank = view.getUint8(skip(1));
    const dims = Array.from({ length: rank }, u32);
    const type = view.getUint8(skip(1));
    const size = u32();
    const from = skip(size);
    const values = readValues(Uint8Array.from(bytes.subarray(from, at)), type);
    if (values) weights.set(name, { dims, values });
  }
  return weights;
}

function readValues(raw: Uint8Array, type: number): Float32Array | undefined {
  if (type === FLOAT32) return new Float32Array(raw.buffer);
  if (type !== FLOAT16) return undefined;
  const bits = new Uint16Array(raw.buffer);
  const values = new Float32Array(bits.length);
  // A loop: `from` lists its numbers first, gigabytes of them.
  for (let at = 0; at < bits.length; at++) values[at] = halves[bits[at] as number] as number;
  return values;
}
