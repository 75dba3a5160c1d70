// Finds a tenant's entries in a bundle of entries. Most are of others and are not parsed.
import { belongsTo } from '../../../shared/audit/bundle/ownership.ts';
import { type LeafFacts, readLeafFacts } from '../../../shared/audit/verify/leaf-facts.ts';

export interface OwnLeaf {
  readonly index: number;
  readonly text: string;
  readonly facts: LeafFacts;
}

/** The tenant's among `entries`, of which the first is entry `from` of the log. */
export function ownLeaves(tenant: string, from: number, entries: readonly Uint8Array[]): OwnLeaf[] {
  // Every leaf of a tenant contains its name, as a value or in the name of an outbox. Its other entries are
  // the first and last of the log.
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
