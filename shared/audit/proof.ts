// Proofs of RFC 6962 §2.1.1 and §2.1.2, made from subtrees and verified as in RFC 9162 §2.1.3.2 and §2.1.4.2.
import { emptyRoot, equalBytes, type Hash, hashNode, splitOf } from './tree.ts';

/** Returns the hash of the complete subtree of 2^height leaves that begins at leaf `at`·2^height. */
export type ReadSubtree = (height: number, at: number) => Promise<Hash>;

/** Returns the siblings from leaf to root, the inclusion proof of leaf `index` in a tree of `size` leaves. */
export async function proveInclusion(index: number, size: number, read: ReadSubtree): Promise<Hash[]> {
  const path = async (from: number, to: number): Promise<Hash[]> => {
    if (to - from === 1) return [];
    const middle = from + splitOf(to - from);
    return index < middle
      ? [...(await path(from, middle)), await hashRange(middle, to, read)]
      : [...(await path(middle, to)), await hashRange(from, middle, read)];
  };
  if (index < 0 || index >= size) throw new RangeError('no such leaf');
  return path(0, size);
}

/** Returns the consistency proof from the tree of `before` leaves to that of `size`. */
export async function proveConsistency(before: number, size: number, read: ReadSubtree): Promise<Hash[]> {
  const prove = async (from: number, to: number, whole: boolean): Promise<Hash[]> => {
    if (before === to) return whole ? [] : [await hashRange(from, to, read)];
    const middle = from + splitOf(to - from);
    return before <= middle
      ? [...(await prove(from, middle, whole)), await hashRange(middle, to, read)]
      : [...(await prove(middle, to, false)), await hashRange(from, middle, read)];
  };
  if (before < 0 || before > size) throw new RangeError('the log was longer before');
  return before === 0 || before === size ? [] : prove(0, size, true);
}

/** Returns the root over the leaves `from` up to `to`, a subtree whose right side may be incomplete. */
export async function hashRange(from: number, to: number, read: ReadSubtree): Promise<Hash> {
  const count = to - from;
  if (count === 0) return emptyRoot;
  if (isPowerOfTwo(count)) return read(Math.log2(count), from / count);
  const middle = from + splitOf(count);
  return hashNode(await hashRange(from, middle, read), await hashRange(middle, to, read));
}

/** Root of the tree of the first `size` leaves. */
interface TreeHead {
  readonly size: number;
  readonly root: Hash;
}

interface Inclusion {
  readonly index: number;
  readonly leaf: Hash;
  readonly proof: readonly Hash[];
}

export function verifyInclusion({ index, leaf, proof }: Inclusion, { size, root }: TreeHead): boolean {
  if (!Number.isSafeInteger(size) || !Number.isSafeInteger(index) || index < 0 || index >= size) return false;
  let [first, last] = [index, size - 1];
  let hash = leaf;
  for (const sibling of proof) {
    if (last === 0) return false;
    if (isOdd(first) || first === last) {
      hash = hashNode(sibling, hash);
      while (!isOdd(first) && first !== 0) [first, last] = [half(first), half(last)];
    } else hash = hashNode(hash, sibling);
    [first, last] = [half(first), half(last)];
  }
  return last === 0 && equalBytes(hash, root);
}

export function verifyConsistency(old: TreeHead, next: TreeHead, proof: readonly Hash[]): boolean {
  const { size: before, root: rootBefore } = old;
  const { size, root } = next;
  if (!Number.isSafeInteger(size) || !Number.isSafeInteger(before) || before < 0 || before > size) return false;
  if (before === size) return proof.length === 0 && equalBytes(rootBefore, root);
  if (before === 0) return proof.length === 0 && equalBytes(rootBefore, emptyRoot);
  const [seed, ...rest] = isPowerOfTwo(before) ? [rootBefore, ...proof] : proof;
  if (seed === undefined) return false;
  let [first, last] = [before - 1, size - 1];
  while (isOdd(first)) [first, last] = [half(first), half(last)];
  let [hashBefore, hashNow] = [seed, seed];
  for (const hash of rest) {
    if (last === 0) return false;
    if (isOdd(first) || first === last) {
      [hashBefore, hashNow] = [hashNode(hash, hashBefore), hashNode(hash, hashNow)];
      while (!isOdd(first) && first !== 0) [first, last] = [half(first), half(last)];
    } else hashNow = hashNode(hashNow, hash);
    [first, last] = [half(first), half(last)];
  }
  return last === 0 && equalBytes(hashBefore, rootBefore) && equalBytes(hashNow, root);
}

// Sizes exceed the 32 bits of bitwise operators.
const isOdd = (value: number): boolean => value % 2 === 1;
const half = (value: number): number => Math.floor(value / 2);
const isPowerOfTwo = (value: number): boolean => Number.isInteger(Math.log2(value)) && 2 ** Math.log2(value) === value;
