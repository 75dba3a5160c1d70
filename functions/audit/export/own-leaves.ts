// Which entries of a bundle are a tenant's. Most are not, and are not even parsed.
import { belongsTo } from '../../../shared/audit/bundle/belongs.ts';
import { type LeafFacts, readLeafFacts } from '../../../shared/audit/verify/leaf-facts.ts';

export interface OwnLeaf {
  readonly index: number;
  readonly text: string;
  readonly facts: LeafFacts;
}

/** The tenant's among `entries`, of which the first is entry `from` of the log. */
export function ownLeaves(tenant: string, from: number, entries: readonly Uint8Array[]): OwnLeaf[] {
  // Its name stands in every leaf of a tenant: as a value of its own, or within the name of an outbox. The others that it
  // may have are the log's first and last.
  const names = [`"${tenant}"`, `/${tenant}/`, '"shard.'].map((name) => Buffer.from(name));
  return entries.flatMap((entry, at): OwnLeaf[] => {
    const bytes = Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength);
    if (!names.some((name) => bytes.includes(name))) return [];
    const text = bytes.toString('utf8');
    const facts = readLeafFacts(text);
    const own = facts && belongsTo(tenant, { ...facts, outbox: facts.leaf.outbox });
    return own ? [{ index: from + at, text, facts }] : [];
  });
}
