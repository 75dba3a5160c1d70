// What a verifier hashes with, millions of times: ours, which runs wherever there is JavaScript, or a platform's faster one.
import { commit } from '../commitment.ts';
import { openSha256, type Sha256 } from '../sha256.ts';
import { type Hash, hashLeaf } from '../tree.ts';

export interface Hashing {
  /** Of an entry as a leaf of the tree. */
  readonly hashLeaf: (entry: Uint8Array) => Hash;
  /** What a leaf says of a disclosure. */
  readonly commit: (disclosure: string) => string;
  readonly openSha256: () => Sha256;
}

export const ownHashing: Hashing = { hashLeaf, commit, openSha256 };
