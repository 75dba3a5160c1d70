// The curve of SM2 (GB/T 32918.5-2017). Not constant time: fit for verification, and for signing on a machine
// where no other party can measure.

const P = 0xfffffffeffffffffffffffffffffffffffffffff00000000ffffffffffffffffn;
const A = P - 3n;
const B = 0x28e9fa9e9d9f5e344d5a9e4bcf6509a7f39789f515ab8f92ddbcbd414d940e93n;
const N = 0xfffffffeffffffffffffffffffffffff7203df6b21c6052b53bbf40939d54123n;

/** Never the point at infinity, which has no such form. */
export interface Point {
  readonly x: bigint;
  readonly y: bigint;
}

const G: Point = {
  x: 0x32c4ae2c1f1981195f9904466a39c9948fe30bbff2660be1715a4589334c74c7n,
  y: 0xbc3736a2f4f6779c59bdcee36b692153d0a9877cc62a474002df32e52139f0a0n,
};

/** A field of the curve: its prime, its coefficients, its generator and the generator's order. */
export const curve = { P, A, B, G, N } as const;

export const modulo = (value: bigint, by: bigint): bigint => ((value % by) + by) % by;

export function invert(value: bigint, by: bigint): bigint {
  let [a, b, x, y] = [modulo(value, by), by, 1n, 0n];
  while (b !== 0n) {
    const times = a / b;
    [a, b] = [b, a - times * b];
    [x, y] = [y, x - times * y];
  }
  return modulo(x, by);
}

export const isOnCurve = ({ x, y }: Point): boolean =>
  x >= 0n && y >= 0n && x < P && y < P && modulo(y * y - (x * x * x + A * x + B), P) === 0n;

/** Jacobian coordinates: x / z², y / z³; z is 0 at infinity. */
interface Jacobian {
  readonly x: bigint;
  readonly y: bigint;
  readonly z: bigint;
}

const INFINITY: Jacobian = { x: 1n, y: 1n, z: 0n };

function double({ x, y, z }: Jacobian): Jacobian {
  if (z === 0n || y === 0n) return INFINITY;
  const yy = (y * y) % P;
  const s = (4n * x * yy) % P;
  const zz = (z * z) % P;
  const m = (3n * (x - zz) * (x + zz)) % P;
  const next = modulo(m * m - 2n * s, P);
  return { x: next, y: modulo(m * (s - next) - 8n * yy * yy, P), z: modulo(2n * y * z, P) };
}

function add(one: Jacobian, other: Jacobian): Jacobian {
  if (one.z === 0n) return other;
  if (other.z === 0n) return one;
  const [z1, z2] = [(one.z * one.z) % P, (other.z * other.z) % P];
  const [u1, u2] = [(one.x * z2) % P, (other.x * z1) % P];
  const [s1, s2] = [(one.y * other.z * z2) % P, (other.y * one.z * z1) % P];
  if (u1 === u2) return s1 === s2 ? double(one) : INFINITY;
  const h = modulo(u2 - u1, P);
  const r = modulo(s2 - s1, P);
  const hh = (h * h) % P;
  const hhh = (h * hh) % P;
  const v = (u1 * hh) % P;
  const x = modulo(r * r - hhh - 2n * v, P);
  return { x, y: modulo(r * (v - x) - s1 * hhh, P), z: (h * one.z * other.z) % P };
}

/** The sum of points, each as many times; `undefined` at infinity. */
export function combine(...terms: readonly { readonly times: bigint; readonly point: Point }[]): Point | undefined {
  let sum = INFINITY;
  const bits = Math.max(...terms.map(({ times }) => times.toString(2).length));
  for (let bit = BigInt(bits - 1); bit >= 0n; bit -= 1n) {
    sum = double(sum);
    for (const { times, point } of terms) if ((times >> bit) & 1n) sum = add(sum, { ...point, z: 1n });
  }
  if (sum.z === 0n) return undefined;
  const z = invert(sum.z, P);
  const zz = (z * z) % P;
  return { x: (sum.x * zz) % P, y: (sum.y * zz * z) % P };
}
