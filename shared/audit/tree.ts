import { sha256 } from '../sha256.ts';

// The Merkle tree of RFC 6962 §2.1. Leaves and nodes are hashed with different first bytes, so that no entry
// passes for a node.

export type Hash = Uint8Array;

export const HASH_BYTES = 32;

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** Root of a log without entries. */
export const emptyRoot: Hash = sha256();

export const hashLeaf = (entry: Uint8Array): Hash => sha256(LEAF, entry);

export const hashNode = (left: Hash, right: Hash): Hash => sha256(NODE, left, right);

/** Returns the largest power of two below `size`, which is at least 2. */
export function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

/** Returns the root over subtrees of one height, `from` up to `to`. */
export function rootOf(hashes: readonly Hash[], from = 0, to = hashes.length): Hash {
  if (to === from) return emptyRoot;
  if (to === from + 1) return hashes[from] as Hash;
  const middle = from + splitOf(to - from);
  return hashNode(rootOf(hashes, from, middle), rootOf(hashes, middle, to));
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
