// SHA-256 (FIPS 180-4) at once. WebCrypto answers each digest by a promise, which costs several times the digest when what
// is hashed are the 65 bytes of a tree's node, a million of them; and a log is verified in browsers, too. What is hashed
// here is public: running time tells nobody anything. Keys, signatures and seals are WebCrypto's.

/** Fractional parts of cube roots of the first 64 primes. */
const K = new Int32Array(64);
/** Fractional parts of square roots of the first eight. */
const START = new Int32Array(8);
for (let candidate = 2, found = 0; found < 64; candidate += 1) {
  let prime = true;
  for (let by = 2; by * by <= candidate; by += 1) if (candidate % by === 0) prime = false;
  if (!prime) continue;
  if (found < 8) START[found] = fraction(Math.sqrt(candidate));
  K[found] = fraction(Math.cbrt(candidate));
  found += 1;
}

function fraction(value: number): number {
  return ((value - Math.floor(value)) * 2 ** 32) | 0;
}

const BLOCK = 64;
const words = new Int32Array(64);
const state = new Int32Array(8);
const tail = new Uint8Array(2 * BLOCK);

/** The digest of the parts, one after the other. */
export function sha256(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  state.set(START);
  let filled = 0;
  let length = 0;
  for (const part of parts) {
    length += part.length;
    let at = 0;
    if (filled > 0) {
      at = Math.min(BLOCK - filled, part.length);
      tail.set(part.subarray(0, at), filled);
      filled += at;
      if (filled < BLOCK) continue;
      compress(tail, 0);
    }
    for (; at + BLOCK <= part.length; at += BLOCK) compress(part, at);
    filled = part.length - at;
    tail.set(part.subarray(at), 0);
  }
  return finish(filled, length);
}

/** A digest of what comes piece by piece. */
export interface Sha256 {
  update(bytes: Uint8Array): void;
  digest(): Uint8Array;
}

/** `sha256` of pieces: between them, what it has so far is kept beside. */
export function openSha256(): Sha256 {
  const [kept, rest] = [Int32Array.from(START), new Uint8Array(BLOCK)];
  let [filled, length] = [0, 0];
  return {
    update(bytes) {
      length += bytes.length;
      let at = 0;
      if (filled > 0) {
        at = Math.min(BLOCK - filled, bytes.length);
        rest.set(bytes.subarray(0, at), filled);
        filled += at;
        if (filled < BLOCK) return;
      }
      state.set(kept);
      if (filled === BLOCK) compress(rest, 0);
      for (; at + BLOCK <= bytes.length; at += BLOCK) compress(bytes, at);
      kept.set(state);
      filled = bytes.length - at;
      rest.set(bytes.subarray(at), 0);
    },
    digest() {
      state.set(kept);
      tail.set(rest, 0);
      return finish(filled, length);
    },
  };
}

function finish(filled: number, length: number): Uint8Array<ArrayBuffer> {
  const end = filled < BLOCK - 8 ? BLOCK : 2 * BLOCK;
  tail.fill(0, filled, end);
  tail[filled] = 0x80;
  const high = Math.floor(length / 2 ** 29);
  const low = (length << 3) >>> 0;
  for (let byte = 0; byte < 4; byte += 1) {
    tail[end - 8 + byte] = high >>> (24 - 8 * byte);
    tail[end - 4 + byte] = low >>> (24 - 8 * byte);
  }
  compress(tail, 0);
  if (end > BLOCK) compress(tail, BLOCK);
  const digest = new Uint8Array(32);
  for (let at = 0; at < 32; at += 1) digest[at] = (state[at >> 2] as number) >>> (24 - 8 * (at & 3));
  return digest;
}

const turn = (x: number, by: number): number => (x >>> by) | (x << (32 - by));

function compress(bytes: Uint8Array, from: number): void {
  for (let t = 0; t < 16; t += 1) {
    const at = from + 4 * t;
    words[t] =
      ((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number);
  }
  for (let t = 16; t < 64; t += 1) {
    const x = words[t - 15] as number;
    const y = words[t - 2] as number;
    const small = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
    const large = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
    words[t] = ((words[t - 16] as number) + small + (words[t - 7] as number) + large) | 0;
  }
  let a = state[0] as number;
  let b = state[1] as number;
  let c = state[2] as number;
  let d = state[3] as number;
  let e = state[4] as number;
  let f = state[5] as number;
  let g = state[6] as number;
  let h = state[7] as number;
  for (let t = 0; t < 64; t += 1) {
    const choice = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + (K[t] as number) + (words[t] as number)) | 0;
    const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + one) | 0;
    d = c;
    c = b;
    b = a;
    a = (one + two) | 0;
  }
  state[0] = (state[0] as number) + a;
  state[1] = (state[1] as number) + b;
  state[2] = (state[2] as number) + c;
  state[3] = (state[3] as number) + d;
  state[4] = (state[4] as number) + e;
  state[5] = (state[5] as number) + f;
  state[6] = (state[6] as number) + g;
  state[7] = (state[7] as number) + h;
}
