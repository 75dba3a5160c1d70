// Verifies the disclosures of a bundle: all that the profile promises, each as committed to, and no more.
import { decodeText, linesOf } from '../bundle/entry-line.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { checkDisclosure } from '../commitment.ts';
import type { LeafFacts } from './leaf-facts.ts';
import { isObject } from './read-manifest.ts';
import type { Findings } from './verdict.ts';

export interface DisclosureLine {
  readonly index: number;
  /** Disclosures by the name of the member. */
  readonly sd: Readonly<Record<string, string>>;
  /** The keys of the leaf's hidden values are destroyed. */
  readonly erased: boolean;
}

export const formatDisclosureLine = ({ index, sd, erased }: DisclosureLine): string =>
  `${JSON.stringify(erased ? { index, erased } : { index, sd })}\n`;

function readDisclosureLine(line: string): DisclosureLine | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (!isObject(value) || !Number.isSafeInteger(value.index)) return undefined;
    const { index, sd = {}, erased = false } = value;
    if (typeof erased !== 'boolean' || !isObject(sd)) return undefined;
    if (!Object.values(sd).every((one) => typeof one === 'string')) return undefined;
    return { index: index as number, sd: sd as Record<string, string>, erased };
  } catch {
    return undefined;
  }
}

/** Selects the hidden members that a profile discloses. */
export function shownBy(redaction: string, names: readonly string[]): readonly string[] {
  if (redaction === 'full') return names;
  const chosen = redaction.startsWith('fields:') ? redaction.slice('fields:'.length).split(',') : [];
  return names.filter((name) => chosen.includes(name));
}

/** Reports whether an entry is in the queried range, and not only in the proof of completeness. */
export function isRequested(
  { query }: Pick<Manifest, 'query'>,
  { time, tseq }: Pick<LeafFacts, 'time' | 'tseq'>,
): boolean {
  const { from = 0, to = Number.POSITIVE_INFINITY, tseq_from: first = 0, tseq_to: last } = query;
  if (time < from || time >= to) return false;
  if (tseq === undefined) return true;
  return tseq >= first && (last === undefined || tseq <= last);
}

const nothing: Readonly<Record<string, unknown>> = {};

/** The disclosures of one part, in the order of its entries. */
export class Disclosed {
  readonly #findings: Findings;
  readonly #manifest: Manifest;
  readonly #commit: (disclosure: string) => string;
  /** Unread lines of the part. */
  #rest: Iterator<Uint8Array> = [].values();
  /** Lines whose entries have not arrived: one, while lines follow the order of the entries. */
  readonly #read = new Map<number, DisclosureLine>();
  /** Largest index read. */
  #reached = -1;
  #disclosed = 0;
  #erased = 0;

  constructor(manifest: Manifest, findings: Findings, commitTo: (disclosure: string) => string) {
    this.#commit = commitTo;
    this.#manifest = manifest;
    this.#findings = findings;
  }

  beginPart(bytes: Uint8Array | undefined): void {
    this.#rest = linesOf(bytes ?? new Uint8Array(0));
    this.#read.clear();
    this.#reached = -1;
  }

  /**
   * Returns the line of an entry. `wanted`: the line is required, so an unordered part is searched
   * completely.
   */
  #lineOf(index: number, wanted: boolean): DisclosureLine | undefined {
    if (!this.#read.has(index)) this.#readUntil(() => this.#reached >= index);
    if (wanted && !this.#read.has(index)) this.#readUntil(() => this.#read.has(index));
    const line = this.#read.get(index);
    this.#read.delete(index);
    return line;
  }

  #readUntil(isEnough: () => boolean): void {
    while (!isEnough()) {
      const { value, done } = this.#rest.next();
      if (done) return;
      const read = readDisclosureLine(decodeText(value) ?? '');
      if (!read || this.#read.has(read.index)) {
        this.#wrong('a line is no disclosure, or a second one of its entry');
        continue;
      }
      this.#read.set(read.index, read);
      this.#reached = Math.max(this.#reached, read.index);
    }
  }

  /** Returns the disclosed values of an entry whose inclusion is verified, by name. */
  of(index: number, facts: LeafFacts): Readonly<Record<string, unknown>> {
    const { sd } = facts;
    const promised = sd && isRequested(this.#manifest, facts) ? shownBy(this.#manifest.redaction, Object.keys(sd)) : [];
    const line = this.#lineOf(index, promised.length > 0);
    if (!line) {
      if (promised.length > 0) this.#lacking(index, promised);
      return nothing;
    }
    if (line.erased) {
      this.#erased += 1;
      if (promised.length === 0) this.#wrong(`entry ${index} is called erased and would not be shown`);
      return nothing;
    }
    this.#disclosed += 1;
    return this.#check(index, sd ?? {}, line.sd, promised);
  }

  #check(
    index: number,
    sd: Readonly<Record<string, string>>,
    given: Readonly<Record<string, string>>,
    promised: readonly string[],
  ): Readonly<Record<string, unknown>> {
    const shown: Record<string, unknown> = {};
    for (const [name, text] of Object.entries(given)) {
      const disclosure = checkDisclosure(text, sd, this.#commit);
      if (disclosure?.name !== name) this.#wrong(`entry ${index}: what is disclosed as "${name}" is not what it hides`);
      else if (!promised.includes(name)) this.#wrong(`entry ${index}: "${name}" is disclosed against the profile`);
      else shown[name] = disclosure.value;
    }
    const lacking = promised.filter((name) => !Object.hasOwn(given, name));
    if (lacking.length > 0) this.#lacking(index, lacking);
    return shown;
  }

  endPart(): void {
    this.#readUntil(() => false);
    for (const index of this.#read.keys()) this.#wrong(`there are disclosures of ${index}, which is not in this part`);
  }

  end(): void {
    const { disclosed, erased } = this.#manifest.counts;
    if (disclosed !== this.#disclosed || erased !== this.#erased) {
      const text = `${this.#disclosed} entries are disclosed and ${this.#erased} erased; the manifest says ${disclosed} and ${erased}`;
      this.#wrong(text);
    }
  }

  #lacking(index: number, names: readonly string[]): void {
    this.#findings.add(
      'disclosures',
      'incomplete',
      `entry ${index}: ${names.join(', ')} should be disclosed and are not`,
    );
  }

  #wrong(text: string): void {
    this.#findings.add('disclosures', 'invalid', text);
  }
}
