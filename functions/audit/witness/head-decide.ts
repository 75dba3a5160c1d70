// Whether the checkpoint of a region goes into the log of checkpoints: decided from what that log has of the region and
// what the region shows, and nothing else.
import { fromBase64 } from '../../../shared/audit/base64.ts';
import type { Checkpoint } from '../../../shared/audit/checkpoint.ts';
import type { Head } from '../../../shared/audit/head.ts';
import { equalBytes } from '../../../shared/audit/tree.ts';
import { limits } from '../../../shared/limits.ts';

/** `at`: when it was recorded, ms since 1970. */
export type Recorded = Head & { readonly at: number };

export interface Shown {
  readonly year: number;
  /** Its year is over, and it has been published to its end. */
  readonly ended: boolean;
  readonly published: Checkpoint | undefined;
  /** The newest one that as many witnesses have signed as the policy demands. */
  readonly accepted: Checkpoint | undefined;
}

/**
 * `record`: if it can be proved that it goes on from `after`. `next`: all of this year's log is recorded. `broken`: the log
 * is not the one that was recorded, grown.
 */
export type HeadStep =
  | { readonly kind: 'wait' | 'next' }
  | { readonly kind: 'record'; readonly checkpoint: Checkpoint; readonly after: Recorded | undefined }
  | { readonly kind: 'broken'; readonly why: string };

export const yearOfLog = (origin: string): number => Number(origin.split('/').at(-1));

export function decideHead(last: Recorded | undefined, shown: Shown, now: number): HeadStep {
  const { published, accepted, ended } = shown;
  // Of an earlier year's log the end is recorded: with another one nothing is compared.
  const after = last && yearOfLog(last.log) === shown.year ? last : undefined;
  const why = after && contradiction(after, published);
  if (why !== undefined) return { kind: 'broken', why };
  const size = after?.size ?? 0;
  if (ended && (published?.size ?? 0) === size) return { kind: 'next' };
  if (!accepted || accepted.size <= size) return { kind: 'wait' };
  if (last && now - last.at < limits.auditHeadMs.value) return { kind: 'wait' };
  return { kind: 'record', checkpoint: accepted, after };
}

/** What can be seen without a proof. */
function contradiction(after: Head, published: Checkpoint | undefined): string | undefined {
  if (!published) return `it shows nothing, and had ${after.size} entries`;
  if (published.origin !== after.log) return `it is called ${published.origin}, and was ${after.log}`;
  if (published.size < after.size) return `it has ${published.size} entries, and had ${after.size}`;
  const same = published.size > after.size || equalBytes(published.root, fromBase64(after.root) ?? new Uint8Array());
  return same ? undefined : `of ${after.size} entries it has another root than it had`;
}
