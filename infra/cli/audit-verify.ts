// auricle audit verify: everything is fetched and hashed again, and compared with what was seen before.
import { openCheckpoint } from '../../shared/audit/checkpoint.ts';
import { equalBytes } from '../../shared/audit/tree.ts';
import { type Verdict, verdicts } from '../../shared/audit/verify/verdict.ts';
import type { Answer } from './answer.ts';
import type { Found } from './audit.ts';
import { fetchCheckpoint, Invalid, leafOf, walkLog } from './audit-log.ts';
import { recall, remember } from './audit-memory.ts';

interface Said {
  readonly size?: number;
  readonly root?: string;
  readonly detail: string;
  readonly holes?: readonly string[];
}

const tell = (verdict: Verdict, said: Said): Answer => ({
  exit: verdicts[verdict],
  text: `${verdict}: ${[said.detail, ...(said.holes ?? [])].join('\n  ')}`,
  value: { verdict, ...said },
});

export async function verifyLog({ base, vkey, reader }: Found): Promise<Answer> {
  const before = recall(base);
  if (before && before.vkey !== vkey)
    return tell('diverged', { detail: 'the key is not the one that was seen before' });
  try {
    const { note, checkpoint } = await fetchCheckpoint(reader);
    const { size } = checkpoint;
    const seen = before && (await openCheckpoint(new TextEncoder().encode(before.note), reader.verifier));
    const holes = new Holes();
    const earlier = await walkLog(reader, checkpoint, seen?.size ?? 0, (entry, index) => holes.see(entry, index));
    const root = Buffer.from(checkpoint.root).toString('base64');
    if (seen && (seen.size > size || !equalBytes(earlier, seen.root))) {
      const detail = `the log of ${size} entries is not the one of ${seen.size} that was seen before, grown`;
      return tell('diverged', { size, root, detail });
    }
    remember(base, { vkey, note: new TextDecoder().decode(note) });
    const since = seen ? `, grown from ${seen.size}` : '';
    if (holes.found.length > 0)
      return tell('incomplete', { size, root, detail: `${size} entries with holes`, holes: holes.found });
    return tell('unwitnessed', { size, root, detail: `${size} entries are as they were signed${since}; no witness` });
  } catch (error) {
    if (error instanceof Invalid) return tell('invalid', { detail: error.message });
    throw error;
  }
}

/** Numbers that should have no holes: those of each outbox, and those of each tenant. */
class Holes {
  readonly found: string[] = [];
  readonly #next = new Map<string, number>();
  #first: number | undefined;

  see(entry: Uint8Array, index: number): void {
    const leaf = leafOf(entry);
    if (!leaf) return;
    // The first log of a region begins with the first of everything; later ones go on from what was before.
    if (index === 0 && leaf.type === 'shard.open' && !('previous' in leaf)) this.#first = 1;
    this.#count(`outbox ${leaf.p} ${leaf.ep}`, leaf.pseq, index);
    if (leaf.tn !== undefined && leaf.tseq !== undefined) this.#count(`tenant ${leaf.tn}`, leaf.tseq, index);
    // The log knows of this one itself.
    if (leaf.type !== 'producer.gap') return;
    const { outbox, epoch, from, to } = leaf as unknown as { outbox: string; epoch: string; from: number; to: number };
    this.found.push(`entry ${index}: events ${from} to ${to} of ${outbox} were lost before they reached the log`);
    this.#next.set(`outbox ${outbox} ${epoch}`, to + 1);
  }

  #count(name: string, number: number, index: number): void {
    const expected = this.#next.get(name) ?? this.#first;
    if (expected !== undefined && expected !== number) {
      this.found.push(`entry ${index}: ${number} of ${name}, expected ${expected}`);
    }
    this.#next.set(name, number + 1);
  }
}
