// Numbers that must be consecutive: the tenant's, and those of each of its outboxes.
import type { Manifest } from '../bundle/manifest.ts';
import { isOwnOutbox } from '../bundle/ownership.ts';
import { type LogEnd, previousOf, yearIn } from '../bundle/previous.ts';
import { canonicalJson } from '../canonical-json.ts';
import { WITNESS_SKEW_MS } from '../limits.ts';
import { NextNumbers, readLoss } from '../next-numbers.ts';
import type { Linked } from './check-links.ts';
import type { LeafFacts } from './leaf-facts.ts';
import { OutboxLives } from './outbox-lives.ts';
import { isObject } from './read-manifest.ts';
import type { Findings } from './verdict.ts';

/** Longest wait for an export's first entry in a published log; then the export fails. */
export const EXPORT_ANCHOR_MS = 120_000;

export class Numbers {
  readonly #manifest: Manifest;
  readonly #findings: Findings;
  #tseq: number | undefined;
  #last: { readonly index: number; readonly leaf: LeafFacts } | undefined;
  #first: number | undefined;
  #shown: Readonly<Record<string, unknown>> = {};
  /** The tenant's last number in the preceding log, if the reader knows it. */
  readonly #after: number | undefined;
  /** The tenant's first leaf in the bundle. */
  #begun: { readonly tseq: number; readonly time: number } | undefined;
  /** Next numbers by outbox and epoch. */
  readonly #next = new NextNumbers();
  readonly #outboxes = new Set<string>();
  readonly #lives = new OutboxLives();
  /** Outbox of the previous entry, usually that of the next one, too. */
  #recent: { readonly p: string; readonly ep: string; readonly name: string; readonly own: boolean } | undefined;
  #time = 0;
  /** Reports whether the bundle has the log's first leaf and that continues another log. */
  #opening: 'first' | 'later' | undefined;
  #previous: LogEnd | undefined;

  constructor(manifest: Manifest, findings: Findings, after?: number) {
    this.#after = after;
    this.#manifest = manifest;
    this.#findings = findings;
  }

  /** Takes the disclosures of an entry and compares the purpose of the export. */
  show(index: number, values: Readonly<Record<string, unknown>>): void {
    if (index === this.#manifest.anchor.index && !this.#isEnded) this.#shown = values;
  }

  /** Returns the predecessor of this log, if its first leaf is in the bundle. */
  get previous(): LogEnd | undefined {
    return this.#previous;
  }

  /** Reports a log that ended before the export: a later log has the export's entry. */
  get #isEnded(): boolean {
    const { anchor, log } = this.#manifest;
    return anchor.log !== undefined && anchor.log !== log.origin;
  }

  see(leaf: LeafFacts, index: number): void {
    this.#first ??= index;
    const { tn, tseq, time } = leaf;
    if (index === 0 && leaf.type === 'shard.open') {
      this.#opening = 'previous' in leaf.leaf ? 'later' : 'first';
      this.#previous = previousOf(leaf.leaf);
    }
    if (time < this.#time) this.#findings.add('numbers', 'invalid', `entry ${index} is older than the one before it`);
    this.#time = time;
    this.#last = { index, leaf };
    if (tn !== undefined && tseq !== undefined) {
      this.#begun ??= { tseq, time };
      this.#countTenant(tseq, index);
    }
    this.#countOutbox(leaf, index);
  }

  #countTenant(tseq: number, index: number): void {
    const expected = this.#tseq === undefined ? this.#manifest.range.tseq[0] : this.#tseq + 1;
    if (tseq < expected) this.#findings.add('numbers', 'invalid', `entry ${index} is number ${tseq}, again`);
    else if (tseq > expected) this.#findings.add('numbers', 'incomplete', missing(expected, tseq - 1));
    this.#tseq = tseq;
  }

  #countOutbox(facts: LeafFacts, index: number): void {
    const { type, leaf, p, ep, pseq } = facts;
    this.#countLoss(leaf, index);
    const { name, own } = this.#outboxOf(p, ep);
    if (!own) return;
    for (const life of this.#lives.see(facts)) {
      const text = `entry ${index}: ${p} begins again, and nothing shows that all of it before (${life}) is in the log`;
      this.#findings.add('outboxes', 'incomplete', text);
    }
    // Events that the producer reports as dropped.
    if (type === 'gap' && Number(leaf.lost) > 0)
      this.#findings.add('outboxes', 'incomplete', `entry ${index}: ${p} dropped ${Number(leaf.lost)} events`);
    // An epoch that began before the bundle may continue at any number.
    const expected = this.#next.take(name, pseq, this.#outboxes.has(p) ? 1 : pseq);
    this.#outboxes.add(p);
    if (pseq > expected) {
      const text = `entry ${index}: events ${expected} to ${pseq - 1} of ${p} (${ep}) are nowhere in the log`;
      this.#findings.add('outboxes', 'incomplete', text);
    } else if (pseq < expected) {
      this.#findings.add('outboxes', 'invalid', `entry ${index} is event ${pseq} of ${p} (${ep}), again`);
    }
  }

  #countLoss(leaf: LeafFacts['leaf'], index: number): void {
    const loss = readLoss(leaf);
    if (typeof loss?.outbox !== 'string' || !isOwnOutbox(loss.outbox, this.#manifest.tenant)) return;
    // An interrupted epoch has no last number and no successor in it.
    if (loss.to === undefined) this.#lives.breakOff(loss.outbox, loss.epoch);
    else this.#next.pass(`${loss.outbox} ${loss.epoch}`, loss.to);
    this.#findings.add('outboxes', 'incomplete', `entry ${index}: ${loss.text}`);
  }

  #outboxOf(p: string, ep: string): { readonly name: string; readonly own: boolean } {
    if (this.#recent?.p === p && this.#recent.ep === ep) return this.#recent;
    this.#recent = { p, ep, name: `${p} ${ep}`, own: isOwnOutbox(p, this.#manifest.tenant) };
    return this.#recent;
  }

  /**
   * Requires that nothing is missing before the first number, within the query. The first number must be 1,
   * the requested one, or one from before the requested time; otherwise the log begins here, and its
   * preceding number is proven or known to the reader.
   */
  #begin({ before, after }: Linked): void {
    const { query } = this.#manifest;
    const { tseq_from: wanted = 1, from } = query;
    const numbered = query.tseq_from !== undefined;
    if (!numbered && from === undefined && this.#opening === undefined)
      this.#incomplete('the first entry of the log is missing');
    // Without an entry in this log, the next log's entry is the first.
    const begin = this.#begun ?? (after === undefined ? undefined : { tseq: after, time: Number.POSITIVE_INFINITY });
    if (begin && before !== undefined && before >= begin.tseq)
      this.#invalid(`number ${before} of the tenant is in a log before this one, and ${begin.tseq} in this one`);
    if (!begin || begin.tseq <= wanted || (from !== undefined && begin.time < from)) return;
    const { tseq } = begin;
    if (this.#opening === 'later' && !numbered) {
      const start = `the log begins with number ${tseq} of the tenant by its own word`;
      const known = before ?? this.#after;
      if (known === undefined) this.#incomplete(`${start}: give the last number of the log before it with --after`);
      else if (tseq > known + 1) this.#incomplete(missing(known + 1, tseq - 1));
    } else if (from === undefined) this.#incomplete(missing(wanted, tseq - 1));
    else
      this.#incomplete(`the tenant's entry before number ${tseq} is missing, which would show that none is left out`);
  }

  #incomplete(text: string): void {
    this.#findings.add('numbers', 'incomplete', text);
  }

  #invalid(text: string): void {
    this.#findings.add('numbers', 'invalid', text);
  }

  end(linked: Linked): void {
    this.#begin(linked);
    const { range, log, query } = this.#manifest;
    const [first, last] = range.tseq;
    const seen = this.#tseq ?? first - 1;
    if (seen < last) this.#incomplete(missing(seen + 1, last));
    else if (seen > last) this.#invalid(`number ${seen} is after the last one, ${last}`);
    if (this.#first !== range.index[0] || this.#last?.index !== range.index[1])
      this.#invalid('the entries do not begin and end where the manifest says');
    if (query.year !== undefined && yearIn(log.origin) !== query.year)
      this.#invalid(`the export was asked for of ${query.year}, and is of ${log.origin}`);
    if (this.#isEnded) this.#endOfLog(linked, last);
    else this.#checkAnchor(this.#last?.leaf, this.#last?.leaf.tseq === last ? this.#last?.index : undefined);
  }

  /** Checks that the bundle of an ended log reaches its end and the tenant's next number. */
  #endOfLog({ after, anchor }: Linked, last: number): void {
    const { checkpoints, query, anchor: stated } = this.#manifest;
    const end = this.#last;
    if (end?.leaf.type !== 'shard.close' || end.index + 1 !== checkpoints.at(-1)?.size)
      this.#incomplete('the last entry of the log is missing, which would show that it had ended');
    if (after === undefined) this.#incomplete(`nothing shows that number ${last} is the tenant's last in this log`);
    else if (after > last + 1) this.#incomplete(missing(last + 1, after - 1));
    else if (after <= last) this.#invalid(`number ${after} of the tenant is in a later log, and ${last} in this one`);
    if (query.year === undefined) this.#invalid('the export was asked for of the newest log, and is of an earlier one');
    this.#checkAnchor(anchor?.leaf, anchor?.origin === stated.log ? anchor?.index : undefined);
  }

  /** Checks the leaf of this export, at which counting ends. `index`: its required position, if known. */
  #checkAnchor(leaf: LeafFacts | undefined, index: number | undefined): void {
    const { anchor, export_id } = this.#manifest;
    const anchored = leaf?.type === anchor.type && leaf.id === anchor.id && index === anchor.index;
    if (!anchored || leaf?.leaf.export !== export_id)
      this.#invalid(
        this.#isEnded
          ? 'the entry of a later log that says that this export was made is not here'
          : 'the last entry is not the one that says that this export was made',
      );
    else if (!isOfRequest(leaf.leaf, this.#manifest))
      this.#invalid('the manifest names another range or profile than the export was made for');
    else if (!isOfRequester({ ...leaf.leaf, ...this.#shown }, leaf.time, this.#manifest))
      this.#invalid('the manifest names another purpose, request or time than the log');
  }
}

/** Compares the query with the export's entry, so that it cannot be narrowed afterwards. */
function isOfRequest({ range = '{}', redaction, sd }: LeafFacts['leaf'], manifest: Manifest): boolean {
  // A profile with many names is too long for a plain member and is hidden.
  const hidden = redaction === undefined && isObject(sd) && 'redaction' in sd;
  if (redaction !== manifest.redaction && !hidden) return false;
  try {
    return canonicalJson(JSON.parse(String(range))) === canonicalJson(manifest.query);
  } catch {
    return false;
  }
}

/** Compares purpose and request where disclosed; otherwise only the manifest states them. */
const isOfRequester = ({ purpose, req }: LeafFacts['leaf'], time: number, manifest: Manifest): boolean =>
  (purpose === undefined || purpose === manifest.purpose) &&
  (req === undefined || req === manifest.requested_by) &&
  Math.abs(Date.parse(manifest.created) - time) <= EXPORT_ANCHOR_MS + WITNESS_SKEW_MS;

const missing = (from: number, to: number): string =>
  from === to ? `number ${from} of the tenant is missing` : `numbers ${from} to ${to} of the tenant are missing`;
