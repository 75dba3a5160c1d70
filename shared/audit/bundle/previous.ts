// The predecessor of a log, as the log's first leaf names it.
import { fromBase64 } from '../../base64.ts';
import { equalBytes, HASH_BYTES, type Hash } from '../tree.ts';

/** A log at a size; for an ended log its final one. */
export interface LogEnd {
  readonly origin: string;
  readonly size: number;
  readonly root: Hash;
}

export const isSameEnd = (a: LogEnd, b: LogEnd): boolean =>
  a.origin === b.origin && a.size === b.size && equalBytes(a.root, b.root);

/** Returns the predecessor; `undefined` for the very first log and for a leaf that opens no log. */
export function previousOf(leaf: Readonly<Record<string, unknown>>): LogEnd | undefined {
  if (leaf.type !== 'shard.open' || typeof leaf.previous !== 'object' || leaf.previous === null) return undefined;
  const { origin, size, root } = leaf.previous as Readonly<Record<string, unknown>>;
  const hash = typeof root === 'string' ? fromBase64(root) : undefined;
  if (typeof origin !== 'string' || !Number.isSafeInteger(size) || hash?.length !== HASH_BYTES) return undefined;
  return { origin, size: size as number, root: hash };
}

/** Returns the year in the name of a log. */
export function yearIn(origin: string): number | undefined {
  const [, year] = /\/(\d{4})$/.exec(origin) ?? [];
  return year === undefined ? undefined : Number(year);
}
