// SM3 (GB/T 32905-2016), for runtimes that have none. What is hashed in pieces keeps 64 bytes and eight words.
import { concat } from '../bytes.ts';

const START = [0x7380166f, 0x4914b2b9, 0x172442d7, 0xda8a0600, 0xa96f30bc, 0x163138aa, 0xe38dee4d, 0xb0fb0e4e] as const;
const BLOCK = 64;

const turn = (x: number, by: number): number => (x << by) | (x >>> (32 - by));

/** The round constants, each turned by its round. */
const T = Int32Array.from({ length: 64 }, (_, j) => turn(j < 16 ? 0x79cc4519 : 0x7a879d8a, j % 32));

export class Sm3 {
  readonly #state = Int32Array.from(START);
  readonly #words = new Int32Array(68);
  readonly #held = new Uint8Array(BLOCK);
  #filled = 0;
  #length = 0;

  update(bytes: Uint8Array): this {
    this.#length += bytes.length;
    let at = 0;
    if (this.#filled > 0) {
      at = Math.min(BLOCK - this.#filled, bytes.length);
      this.#held.set(bytes.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < BLOCK) return this;
      this.#compress(this.#held, 0);
    }
    for (; at + BLOCK <= bytes.length; at += BLOCK) this.#compress(bytes, at);
    this.#filled = bytes.length - at;
    this.#held.set(bytes.subarray(at));
    return this;
  }

  /** Once, at the end. */
  digest(): Uint8Array<ArrayBuffer> {
    const bits = BigInt(this.#length) * 8n;
    const zeros = (2 * BLOCK - 9 - this.#filled) % BLOCK;
    const end = new Uint8Array(1 + zeros + 8);
    end[0] = 0x80;
    new DataView(end.buffer).setBigUint64(1 + zeros, bits);
    this.update(end);
    const digest = new Uint8Array(32);
    const view = new DataView(digest.buffer);
    for (const [at, word] of this.#state.entries()) view.setInt32(4 * at, word);
    return digest;
  }

  #compress(bytes: Uint8Array, from: number): void {
    const w = this.#words;
    for (let j = 0; j < 16; j += 1) {
      const at = from + 4 * j;
      w[j] =
        ((bytes[at] as number) << 24) |
        ((bytes[at + 1] as number) << 16) |
        ((bytes[at + 2] as number) << 8) |
        (bytes[at + 3] as number);
    }
    for (let j = 16; j < 68; j += 1) {
      const x = (w[j - 16] as number) ^ (w[j - 9] as number) ^ turn(w[j - 3] as number, 15);
      w[j] = x ^ turn(x, 15) ^ turn(x, 23) ^ turn(w[j - 13] as number, 7) ^ (w[j - 6] as number);
    }
    this.#mix(w);
  }

  #mix(w: Int32Array): void {
    const state = this.#state;
    let a = state[0] as number;
    let b = state[1] as number;
    let c = state[2] as number;
    let d = state[3] as number;
    let e = state[4] as number;
    let f = state[5] as number;
    let g = state[6] as number;
    let h = state[7] as number;
    for (let j = 0; j < 64; j += 1) {
      const a12 = turn(a, 12);
      const one = turn((a12 + e + (T[j] as number)) | 0, 7);
      const two = one ^ a12;
      const choice = j < 16 ? a ^ b ^ c : (a & b) | (a & c) | (b & c);
      const other = j < 16 ? e ^ f ^ g : (e & f) | (~e & g);
      const x = (choice + d + two + ((w[j] as number) ^ (w[j + 4] as number))) | 0;
      const y = (other + h + one + (w[j] as number)) | 0;
      d = c;
      c = turn(b, 9);
      b = a;
      a = x;
      h = g;
      g = turn(f, 19);
      f = e;
      e = y ^ turn(y, 9) ^ turn(y, 17);
    }
    state[0] = (state[0] as number) ^ a;
    state[1] = (state[1] as number) ^ b;
    state[2] = (state[2] as number) ^ c;
    state[3] = (state[3] as number) ^ d;
    state[4] = (state[4] as number) ^ e;
    state[5] = (state[5] as number) ^ f;
    state[6] = (state[6] as number) ^ g;
    state[7] = (state[7] as number) ^ h;
  }
}

/** The digest of the parts, one after the other. */
export const sm3 = (...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> =>
  new Sm3().update(concat(...parts)).digest();
