// Decides whether a witness may advance to a checkpoint (C2SP tlog-witness, add-checkpoint).
import { verifyConsistency } from '../../shared/audit/proof.ts';
import { emptyRoot, equalBytes, type Hash } from '../../shared/audit/tree.ts';

export interface Head {
  readonly size: number;
  readonly root: Hash;
}

export type Advance =
  | { readonly status: 200 }
  /** The declared old size exceeds the checkpoint's. */
  | { readonly status: 400 }
  /** The declared old size is not the witness's, which is `size`. */
  | { readonly status: 409; readonly size: number }
  /** The consistency proof fails: the log has not only grown. */
  | { readonly status: 422 };

/** `seen`: the last cosigned head. The caller has verified the signature of the log. */
export function advance(seen: Head | undefined, old: number, proof: readonly Hash[], next: Head): Advance {
  const { size, root } = seen ?? { size: 0, root: emptyRoot };
  if (old > next.size) return { status: 400 };
  if (old !== size) return { status: 409, size };
  if (next.size === 0 && !equalBytes(next.root, emptyRoot)) return { status: 422 };
  if (old === 0) return { status: proof.length === 0 ? 200 : 422 };
  return { status: verifyConsistency({ size, root }, next, proof) ? 200 : 422 };
}
