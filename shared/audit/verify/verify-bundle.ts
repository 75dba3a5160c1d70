// Verifies a bundle from its files and the reader's policy alone.
import { toHex } from '../../hex.ts';
import { blocksBetween } from '../bundle/cover.ts';
import { linesOf, readEntryLine } from '../bundle/entry-line.ts';
import type { BundlePart } from '../bundle/manifest.ts';
import { belongsTo } from '../bundle/ownership.ts';
import type { LogEnd } from '../bundle/previous.ts';
import { ENTRY_BYTES_MAX } from '../tile.ts';
import { HASH_BYTES } from '../tree.ts';
import type { BundleFiles } from './bundle-files.ts';
import { checkWitnesses, Growth, type Heads, readHeads, readKnownHead } from './check-heads.ts';
import { checkLinks, type Linked } from './check-links.ts';
import { DerivedAgain } from './derived-again.ts';
import { Disclosed, isRequested } from './disclosed.ts';
import { type Hashing, ownHashing } from './hashing.ts';
import { type LeafFacts, readLeafFacts } from './leaf-facts.ts';
import { Numbers } from './numbers.ts';
import { type OpenBundle, openBundle } from './open-bundle.ts';
import { reportOf } from './report.ts';
import { Findings, type Report } from './verdict.ts';

export interface VerifiedEntry {
  readonly index: number;
  readonly facts: LeafFacts;
  /** Values that the bundle discloses, by name. */
  readonly shown: Readonly<Record<string, unknown>>;
}

export interface VerifyOptions {
  /** The reader's policy; without it the bundle's own applies, and the report says so. */
  readonly policy?: Uint8Array;
  /** A checkpoint of the log from another source. */
  readonly head?: Uint8Array;
  /** Required tenant of the bundle. */
  readonly tenant?: string;
  /** The tenant's last number in the preceding log, when this log begins here. */
  readonly after?: number;
  /** Faster hashing of the platform. */
  readonly hashing?: Hashing;
  /** Receives each entry with its verified disclosures, in log order, before the overall verdict. */
  readonly onEntry?: (entry: VerifiedEntry) => void;
  /** Epoch ms. Later signatures are invalid. */
  readonly now: number;
}

export async function verifyBundle(files: BundleFiles, options: VerifyOptions): Promise<Report> {
  const findings = new Findings();
  const bundle = await openBundle(files, options.policy, findings);
  const heads = bundle && (await readHeads(bundle, options.now, findings));
  if (bundle && heads) {
    checkWitnesses(heads, bundle.policy.quorum, findings);
    await checkEntries(bundle, heads, options, findings);
    await bundle.readRest();
  }
  return reportOf(findings, bundle?.manifest, heads?.end, options.policy !== undefined);
}

async function checkEntries(
  bundle: OpenBundle,
  heads: Heads,
  options: VerifyOptions,
  findings: Findings,
): Promise<void> {
  const { manifest } = bundle;
  if (options.tenant !== undefined && options.tenant !== manifest.tenant)
    findings.add('manifest', 'invalid', `the bundle is of the tenant ${manifest.tenant}`);
  const known = options.head && readKnownHead(options.head);
  if (options.head && !known) findings.add('consistency', 'incomplete', 'the known head is no checkpoint');
  const walk = new Walk({ bundle, heads, growth: new Growth(heads, known, findings), findings }, options);
  for (const part of manifest.parts) if (!(await walk.part(part))) return;
  const ends = { end: heads.end.checkpoint, previous: walk.previous, now: options.now };
  walk.end(await checkLinks(bundle, ends, findings));
}

interface WalkContext {
  readonly bundle: OpenBundle;
  readonly heads: Heads;
  readonly growth: Growth;
  readonly findings: Findings;
}

/** Walks the entries in order; hashes them and the subtrees between them. */
class Walk {
  readonly #bundle: OpenBundle;
  readonly #heads: Heads;
  readonly #growth: Growth;
  readonly #findings: Findings;
  readonly #numbers: Numbers;
  readonly #disclosed: Disclosed;
  readonly #hashing: Hashing;
  readonly #onEntry: VerifyOptions['onEntry'];
  readonly #cuts: readonly number[];
  #count = 0;
  #proofs: { readonly bytes: Uint8Array; at: number } = { bytes: new Uint8Array(0), at: 0 };

  constructor({ bundle, heads, growth, findings }: WalkContext, options: VerifyOptions) {
    this.#hashing = options.hashing ?? ownHashing;
    this.#onEntry = options.onEntry;
    this.#bundle = bundle;
    this.#heads = heads;
    this.#growth = growth;
    this.#findings = findings;
    this.#numbers = new Numbers(bundle.manifest, findings, options.after);
    this.#disclosed = new Disclosed(bundle.manifest, findings, this.#hashing.commit);
    this.#cuts = heads.checkpoints.map(({ size }) => size);
  }

  /** Returns `false` when verification cannot continue. */
  async part(part: BundlePart): Promise<boolean> {
    const { read } = this.#bundle;
    const [entries, proofs] = [await read(part.entries), await read(part.proofs)];
    const disclosures = part.disclosures === undefined ? undefined : await read(part.disclosures);
    if (!entries || !proofs || (part.disclosures !== undefined && !disclosures)) return false;
    if (this.#proofs.at !== this.#proofs.bytes.length) return this.#stop('a part has proofs that nothing needs');
    this.#proofs = { bytes: proofs, at: 0 };
    this.#disclosed.beginPart(disclosures);
    const { manifest, check } = this.#bundle;
    const again = new DerivedAgain(part, { origin: manifest.log.origin, note: this.#heads.note }, this.#hashing);
    for (const line of linesOf(entries)) {
      const entry = this.#entry(line);
      if (!entry) return false;
      const values = this.#disclosed.of(entry.index, entry.facts);
      this.#numbers.show(entry.index, values);
      this.#onEntry?.({ index: entry.index, facts: entry.facts, shown: values });
      if (!again.isNeeded || !isRequested(manifest, entry.facts)) continue;
      again.add({ index: entry.index, leafHash: toHex(entry.hash), leaf: entry.facts.leaf, shown: values });
    }
    this.#disclosed.endPart();
    for (const path of await again.end(check))
      this.#findings.add('derived', 'invalid', `${path} is not what the entries give`);
    return true;
  }

  #entry(line: Uint8Array) {
    const read = readEntryLine(line);
    const facts = read && readLeafFacts(read.text);
    if (!read || !facts) return this.#nothing('an entry cannot be read');
    const { index, bytes } = read;
    const { size } = this.#growth.left;
    if (index < size) return this.#nothing(`entry ${index} comes after entry ${size - 1}`);
    if (index >= this.#heads.end.checkpoint.size) return this.#nothing(`entry ${index} is not in the log`);
    const { tenant } = this.#bundle.manifest;
    if (!belongsTo(tenant, { ...facts, outbox: facts.leaf.outbox }))
      this.#findings.add('numbers', 'invalid', `entry ${index} is not one of the tenant ${tenant}`);
    if (!this.#fill(index)) return undefined;
    if (bytes.length > ENTRY_BYTES_MAX) return this.#nothing(`entry ${index} is longer than an entry can be`);
    const hash = this.#hashing.hashLeaf(bytes);
    this.#push(0, hash);
    this.#numbers.see(facts, index);
    this.#count += 1;
    return { index, facts, hash };
  }

  /** Takes the hashes of the subtrees before the entry `to`. */
  #fill(to: number): boolean {
    for (const { height } of blocksBetween(this.#growth.left.size, to, this.#cuts)) {
      const { bytes, at } = this.#proofs;
      if (at + HASH_BYTES > bytes.length) return this.#stop(`the proofs do not reach to entry ${to}`);
      this.#push(height, bytes.subarray(at, at + HASH_BYTES));
      this.#proofs.at += HASH_BYTES;
    }
    return true;
  }

  #push(height: number, hash: Uint8Array): void {
    this.#growth.left.push(height, hash);
    // Compared only at checkpoints: computing a root costs more than a hash.
    this.#growth.look();
  }

  get previous(): LogEnd | undefined {
    return this.#numbers.previous;
  }

  end(linked: Linked): void {
    if (!this.#fill(this.#heads.end.checkpoint.size)) return;
    if (this.#proofs.at !== this.#proofs.bytes.length) this.#stop('there are proofs that nothing needs');
    this.#growth.end();
    this.#numbers.end(linked);
    this.#disclosed.end();
    const { entries } = this.#bundle.manifest.counts;
    if (entries !== this.#count)
      this.#findings.add('numbers', 'invalid', `there are ${this.#count} entries, the manifest says ${entries}`);
  }

  #nothing(text: string): undefined {
    this.#stop(text);
    return undefined;
  }

  #stop(text: string): false {
    this.#findings.add('inclusion', 'invalid', text);
    return false;
  }
}
