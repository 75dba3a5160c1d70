// Hash functions of a verifier: portable ones, or faster ones of a platform.

import { openSha256, type Sha256 } from '../../sha256.ts';
import { commit } from '../commitment.ts';
import { type Hash, hashLeaf } from '../tree.ts';

export interface Hashing {
  /** Leaf hash of an entry. */
  readonly hashLeaf: (entry: Uint8Array) => Hash;
  /** Commitment of a disclosure. */
  readonly commit: (disclosure: string) => string;
  readonly openSha256: () => Sha256;
}

export const ownHashing: Hashing = { hashLeaf, commit, openSha256 };
