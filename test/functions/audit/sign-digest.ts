// ECDSA on P-256 over a digest (FIPS 186-5, 6.4): what a vault does, and what neither Node nor WebCrypto offers, since both
// hash what they sign. Slow, and not to be used with a key that matters.
const P = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const G: Point = [
  0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296n,
  0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5n,
];
type Point = readonly [bigint, bigint];

const mod = (value: bigint, by: bigint): bigint => ((value % by) + by) % by;

function inverse(value: bigint, by: bigint): bigint {
  let [a, b, x, y] = [mod(value, by), by, 1n, 0n];
  while (a !== 0n) {
    const whole = b / a;
    [a, b, x, y] = [b - whole * a, a, y - whole * x, x];
  }
  return mod(y, by);
}

function add(one: Point | undefined, other: Point | undefined): Point | undefined {
  if (!one || !other) return one ?? other;
  const [[x1, y1], [x2, y2]] = [one, other];
  if (x1 === x2 && y1 !== y2) return undefined;
  const slope = x1 === x2 ? (3n * x1 * x1 - 3n) * inverse(2n * y1, P) : (y2 - y1) * inverse(x2 - x1, P);
  const x = mod(slope * slope - x1 - x2, P);
  return [x, mod(slope * (x1 - x) - y1, P)];
}

function times(count: bigint, point: Point): Point | undefined {
  let [sum, power]: [Point | undefined, Point | undefined] = [undefined, point];
  for (let left = count; left > 0n; left >>= 1n) {
    if (left & 1n) sum = add(sum, power);
    power = add(power, power);
  }
  return sum;
}

const toNumber = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
const toBytes = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');

/** r and s, 32 bytes each. `secret`: the private number of the key. */
export function signDigest(secret: Uint8Array, digest: Uint8Array): Uint8Array {
  for (;;) {
    const once = mod(toNumber(crypto.getRandomValues(new Uint8Array(40))), N - 1n) + 1n;
    const r = mod(times(once, G)?.[0] ?? 0n, N);
    const s = mod(inverse(once, N) * (toNumber(digest) + r * toNumber(secret)), N);
    if (r !== 0n && s !== 0n) return Buffer.concat([toBytes(r), toBytes(s)]);
  }
}
