// Beside the log of checkpoints: does the log of each region, as it is shown now, go on from its last head?
import { fromBase64 } from '../../shared/audit/base64.ts';
import { type Head, readHead } from '../../shared/audit/head.ts';
import { proveConsistency, verifyConsistency } from '../../shared/audit/proof.ts';
import { subtreesOf } from '../../shared/audit/subtree.ts';
import { TILE_WIDTH } from '../../shared/audit/tile.ts';
import { fetchCheckpoint, fetchHashes, Invalid, type LogReader, leafOf, listedLogs, openReader } from './audit-log.ts';
import { recall } from './audit-memory.ts';

const noHash = new Uint8Array();

export class RegionHeads {
  readonly #edge: string;
  readonly #headers: Record<string, string>;
  /** By region, the last one. */
  readonly #last = new Map<string, Head>();
  readonly #wrong: string[] = [];

  constructor(edge: string, headers: Record<string, string>) {
    this.#edge = edge;
    this.#headers = headers;
  }

  see(entry: Uint8Array): void {
    const leaf = leafOf(entry);
    const found = leaf && readHead(leaf);
    if (!found) return;
    const { zone, head } = found;
    const before = this.#last.get(zone);
    if (before?.log === head.log && before.size >= head.size)
      this.#wrong.push(`${head.log} was recorded with ${before.size} entries, then with ${head.size}`);
    this.#last.set(zone, head);
  }

  /** What is wrong. */
  async end(): Promise<readonly string[]> {
    const response = await fetch(`${this.#edge}/v1/audit/log`, { headers: this.#headers });
    if (!response.ok) return [...this.#wrong, 'the edge does not say which logs there are'];
    const listed = listedLogs.safeParse(await response.json().catch(() => undefined));
    if (!listed.success) return [...this.#wrong, 'the edge does not say which logs there are'];
    for (const [zone, head] of this.#last) {
      const log = listed.data.data.find((one) => one.zone === zone && one.vkey.startsWith(`${head.log}+`));
      const base = `${this.#edge}${log?.prefix}`;
      const reader = log && (await openReader(base, recall(base)?.vkey ?? log.vkey, this.#headers));
      if (!reader) this.#wrong.push(`${head.log} is recorded, and not among the logs that there are`);
      else if (reader.verifier.name !== head.log)
        this.#wrong.push(`${head.log} is recorded, and known under another name`);
      else this.#wrong.push(...(await compare(reader, head)));
    }
    return this.#wrong;
  }
}

async function compare(reader: LogReader, { log, size, root }: Head): Promise<string[]> {
  const { checkpoint } = await fetchCheckpoint(reader);
  if (checkpoint.size < size) return [`${log} has ${checkpoint.size} entries, and had ${size}`];
  const read = subtreesOf(checkpoint.size, ({ level, index }) => {
    // Hashes of one tile, which is asked for by its first one.
    if (level === 'entries') throw new Invalid('a proof is made of hashes');
    return fetchHashes(reader, level, index * TILE_WIDTH, checkpoint.size);
  });
  const proof = await proveConsistency(size, checkpoint.size, read);
  const grown = verifyConsistency(size, checkpoint.size, fromBase64(root) ?? noHash, checkpoint.root, proof);
  return grown ? [] : [`${log} of ${checkpoint.size} entries does not go on from the ${size} that were recorded`];
}
