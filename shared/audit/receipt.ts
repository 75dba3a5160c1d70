// A self-contained inclusion proof of an entry (C2SP tlog-proof): its index, its path to the root, and the
// signed checkpoint.

import { fromBase64, toBase64 } from '../base64.ts';
import type { Judge, Judged } from './judge.ts';
import { PROOF_HASHES_MAX } from './limits.ts';
import { verifyInclusion } from './proof.ts';
import { HASH_BYTES, type Hash, hashLeaf } from './tree.ts';

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';

export interface Receipt {
  /** Index of the entry, from 0. */
  readonly index: number;
  /** Siblings from the leaf to the root. */
  readonly proof: readonly Hash[];
  /** The published signed note. */
  readonly checkpoint: string;
  /** Arbitrary data, not verified. */
  readonly extra?: Uint8Array;
}

export function formatReceipt({ index, proof, checkpoint, extra }: Receipt): string {
  const lines = [
    FIRST_LINE,
    ...(extra ? [`extra ${toBase64(extra)}`] : []),
    `index ${index}`,
    ...proof.map((hash) => toBase64(hash)),
  ];
  return `${lines.join('\n')}\n\n${checkpoint}`;
}

/** Parses a receipt without verifying it; `undefined` for anything that `formatReceipt` would not write. */
export function readReceipt(bytes: Uint8Array): Receipt | undefined {
  const text = decode(bytes);
  const split = text?.indexOf('\n\n') ?? -1;
  if (text === undefined || split < 0) return undefined;
  const [first, ...lines] = text.slice(0, split).split('\n');
  const extra = lines[0]?.startsWith('extra ') ? fromBase64((lines.shift() as string).slice('extra '.length)) : null;
  const [, digits = ''] = /^index (0|[1-9]\d*)$/.exec(lines.shift() ?? '') ?? [];
  const index = Number(digits);
  if (first !== FIRST_LINE || extra === undefined || digits === '' || !Number.isSafeInteger(index)) return undefined;
  if (lines.length > PROOF_HASHES_MAX) return undefined;
  const proof = lines.map(fromBase64);
  if (!proof.every((hash): hash is Uint8Array<ArrayBuffer> => hash?.length === HASH_BYTES)) return undefined;
  return { index, proof, checkpoint: text.slice(split + 2), ...(extra && { extra }) };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Returns the evaluated checkpoint when the receipt proves that it covers the entry; otherwise `undefined`.
 */
export async function verifyReceipt(
  { index, proof, checkpoint }: Receipt,
  entry: Uint8Array,
  judge: Judge,
  latest?: number,
): Promise<Judged | undefined> {
  const judged = await judge(new TextEncoder().encode(checkpoint), latest);
  if (!judged) return undefined;
  return verifyInclusion({ index, leaf: hashLeaf(entry), proof }, judged.checkpoint) ? judged : undefined;
}
