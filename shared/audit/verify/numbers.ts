// Numbers that must have no holes: those of the tenant, and those of each of its outboxes.
import { isOwnOutbox } from '../bundle/belongs.ts';
import type { Manifest } from '../bundle/manifest.ts';
import type { LeafFacts } from './leaf-facts.ts';
import type { Findings } from './verdict.ts';

export class Numbers {
  readonly #manifest: Manifest;
  readonly #findings: Findings;
  #tseq: number | undefined;
  #last: { readonly index: number; readonly leaf: LeafFacts } | undefined;
  #first: number | undefined;
  /** By outbox and its life: the number that comes next. */
  readonly #next = new Map<string, number>();
  readonly #outboxes = new Set<string>();
  #time = 0;
  /** Whether the log's first leaf is here, and goes on from another log. */
  #opening: 'first' | 'later' | undefined;

  constructor(manifest: Manifest, findings: Findings) {
    this.#manifest = manifest;
    this.#findings = findings;
  }

  see(leaf: LeafFacts, index: number): void {
    this.#first ??= index;
    const { tn, tseq, time } = leaf;
    if (index === 0 && leaf.type === 'shard.open') this.#opening = 'previous' in leaf.leaf ? 'later' : 'first';
    if (time < this.#time) this.#findings.add('numbers', 'invalid', `entry ${index} is older than the one before it`);
    this.#time = time;
    this.#last = { index, leaf };
    if (tn !== undefined && tseq !== undefined) this.#countTenant(tseq, index);
    this.#countOutbox(leaf, index);
  }

  #countTenant(tseq: number, index: number): void {
    const expected = this.#tseq === undefined ? this.#manifest.range.tseq[0] : this.#tseq + 1;
    if (tseq < expected) this.#findings.add('numbers', 'invalid', `entry ${index} is number ${tseq}, again`);
    else if (tseq > expected) this.#findings.add('numbers', 'incomplete', missing(expected, tseq - 1));
    this.#tseq = tseq;
  }

  #countOutbox({ type, leaf, p, ep, pseq }: LeafFacts, index: number): void {
    const { tenant } = this.#manifest;
    const { outbox, epoch, from, to } = leaf;
    if (type === 'producer.gap' && typeof outbox === 'string' && isOwnOutbox(outbox, tenant)) {
      this.#next.set(`${outbox} ${String(epoch)}`, Number(to) + 1);
      const text = `entry ${index}: events ${String(from)} to ${String(to)} of ${outbox} were lost before they reached the log`;
      this.#findings.add('outboxes', 'incomplete', text);
    }
    if (!isOwnOutbox(p, tenant)) return;
    // What it knows itself to have dropped.
    if (type === 'gap' && Number(leaf.lost) > 0)
      this.#findings.add('outboxes', 'incomplete', `entry ${index}: ${p} dropped ${Number(leaf.lost)} events`);
    const name = `${p} ${ep}`;
    // Of the lives that began before the bundle does, the first number that it has is as good as any.
    const expected = this.#next.get(name) ?? (this.#outboxes.has(p) ? 1 : pseq);
    this.#outboxes.add(p);
    this.#next.set(name, pseq + 1);
    if (pseq > expected) {
      const text = `entry ${index}: events ${expected} to ${pseq - 1} of ${p} (${ep}) are nowhere in the log`;
      this.#findings.add('outboxes', 'incomplete', text);
    } else if (pseq < expected) {
      this.#findings.add('outboxes', 'invalid', `entry ${index} is event ${pseq} of ${p} (${ep}), again`);
    }
  }

  /** Nothing may be missing before the first number, as far as it was asked for. */
  #begin(): void {
    const { range, query } = this.#manifest;
    const [first] = range.tseq;
    const wanted = query.tseq_from ?? (query.from === undefined && this.#opening !== 'later' ? 1 : first);
    if (first > wanted) this.#findings.add('numbers', 'incomplete', missing(wanted, first - 1));
    if (query.tseq_from === undefined && query.from === undefined && this.#opening === undefined)
      this.#findings.add('numbers', 'incomplete', 'the first entry of the log is missing');
  }

  /** The last one must be the leaf of this very export: it is what all others are counted up to. */
  end(): void {
    this.#begin();
    const { range, anchor, export_id } = this.#manifest;
    const [first, last] = range.tseq;
    if (this.#tseq === undefined || this.#tseq < last)
      this.#findings.add('numbers', 'incomplete', missing(this.#tseq === undefined ? first : this.#tseq + 1, last));
    else if (this.#tseq > last)
      this.#findings.add('numbers', 'invalid', `number ${this.#tseq} is after the last one, ${last}`);
    if (this.#first !== range.index[0] || this.#last?.index !== range.index[1])
      this.#findings.add('numbers', 'invalid', 'the entries do not begin and end where the manifest says');
    const leaf = this.#last?.leaf;
    const anchored =
      leaf?.type === anchor.type && leaf.id === anchor.id && this.#last?.index === anchor.index && leaf.tseq === last;
    if (!anchored || leaf?.leaf.export !== export_id)
      this.#findings.add('numbers', 'invalid', 'the last entry is not the one that says that this export was made');
  }
}

const missing = (from: number, to: number): string =>
  from === to ? `number ${from} of the tenant is missing` : `numbers ${from} to ${to} of the tenant are missing`;
