// auricle audit search|index: what the edge finds is believed as far as the log's key, the tree and the commitments carry it.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { openCheckpoint } from '../../shared/audit/checkpoint.ts';
import { checkDisclosure } from '../../shared/audit/commitment.ts';
import { type Leaf, readLeaf } from '../../shared/audit/leaf.ts';
import { openVerifier } from '../../shared/audit/note.ts';
import { readVerifierKey } from '../../shared/audit/note-key.ts';
import { verifyInclusion } from '../../shared/audit/proof.ts';
import { readReceipt } from '../../shared/audit/receipt.ts';
import { foundEntries, type SearchHit } from '../../shared/audit/search.ts';
import { hashLeaf } from '../../shared/audit/tree.ts';
import { type Answer, refused, wrong } from './answer.ts';
import type { findLog } from './audit-find.ts';
import type { Arguments } from './options.ts';

const found = z.object({ data: z.array(foundEntries) });

type Query = Pick<Arguments, 'request' | 'subject' | 'commitment' | 'day' | 'onlyModel' | 'type'>;

/** What a hit says, once it is shown. */
interface Shown {
  readonly zone: string;
  readonly year: number;
  readonly index: number;
  readonly leafHash: string;
  readonly leaf: Leaf;
  /** What the log knows the subject as. */
  readonly commitment?: string;
}

export async function searchAudit(
  given: Arguments,
  headers: Record<string, string>,
  find: typeof findLog,
): Promise<Answer> {
  if (/^c1:[0-9a-f]{64}$/.test(given.subject ?? '')) {
    const { subject: known, ...rest } = given;
    return searchAudit({ ...rest, subject: undefined, commitment: known }, headers, find);
  }
  const { edge, request, subject, commitment, onlyModel: model, day, type, zone, after, out } = given;
  if (after !== undefined && zone === undefined) return wrong('--after goes on in one zone: give --zone, too');
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ request, commitment, model, day, type, zone, after })) {
    if (value !== undefined) query.set(name, value);
  }
  const about = subject === undefined ? {} : { 'x-auricle-subject': encodeURIComponent(subject) };
  const response = await fetch(`${edge}/v1/audit/search?${query}`, { headers: { ...headers, ...about } });
  if (!response.ok) return refused(response);
  const parsed = found.safeParse(await response.json());
  if (!parsed.success) return wrong('the answer is not one of this edge');
  const [shown, broken]: [Shown[], string[]] = [[], []];
  for (const { zone: one, hits } of parsed.data.data) {
    const keys = await find({ ...given, zone: one }, headers);
    if ('exit' in keys) return keys;
    for (const hit of hits) {
      const proven = await proveHit(hit, keys.vkey, given);
      if (typeof proven === 'string') broken.push(`${one} ${hit.index}: ${proven}`);
      else shown.push({ zone: one, ...proven });
      if (out !== undefined && typeof proven !== 'string') writeHit(out, one, hit);
    }
  }
  return tell(shown, broken, parsed.data.data);
}

/** The entry as it stands in the log, and its receipt beside it. */
function writeHit(folder: string, zone: string, { year, index, entry, receipt }: SearchHit): void {
  mkdirSync(folder, { recursive: true });
  const name = path.join(folder, `${zone}-${year}-${index}`);
  writeFileSync(`${name}.json`, entry);
  writeFileSync(`${name}.tlog-proof`, receipt);
}

/** What is wrong with a hit, or what it shows. */
export async function proveHit(
  { year, index, leafHash, entry, receipt, disclosure }: SearchHit,
  vkey: string,
  query: Query,
): Promise<Omit<Shown, 'zone'> | string> {
  const key = readVerifierKey(vkey);
  // The key is of all years, its name of one.
  const name = key?.name.replace(/\d{4}$/, String(year));
  const read = readReceipt(new TextEncoder().encode(receipt));
  if (!key || name === undefined || read?.index !== index) return 'the receipt is none';
  const verifier = await openVerifier(name, key.publicKey);
  const checkpoint = await openCheckpoint(new TextEncoder().encode(read.checkpoint), verifier);
  if (!checkpoint) return `the checkpoint is not signed by ${name}`;
  const bytes = new TextEncoder().encode(entry);
  const hash = hashLeaf(bytes);
  if (Buffer.from(hash).toString('base64') !== leafHash) return 'the hash is of another entry';
  if (!verifyInclusion(index, checkpoint.size, hash, read.proof, checkpoint.root)) return 'it is not in the log';
  const leaf = readLeaf(bytes);
  if (!leaf) return 'it is no entry as this version reads them';
  const misfit = misfitOf(leaf, query);
  if (misfit !== undefined) return misfit;
  const { subject, commitment } = query;
  if (subject === undefined && commitment === undefined) return { year, index, leafHash, leaf };
  const said = checkDisclosure(disclosure ?? '', leaf.sd ?? {});
  if (said?.name !== 'subject' || typeof said.value !== 'string') return 'nothing shows whom it is about';
  if (subject === undefined && said.value !== commitment) return 'it is about somebody else';
  return { year, index, leafHash, leaf, commitment: said.value };
}

function misfitOf(leaf: Leaf, { request, onlyModel, day, type }: Query): string | undefined {
  if (type !== undefined && leaf.type !== type) return 'it is of another type';
  if (request !== undefined && leaf.req !== request) return 'it is of another request';
  if (onlyModel !== undefined && leaf.model !== onlyModel) return 'it is of another model';
  if (day !== undefined && new Date(leaf.t.origin).toISOString().slice(0, 10) !== day) return 'it is of another day';
  return undefined;
}

function tell(shown: readonly Shown[], broken: readonly string[], zones: z.infer<typeof found>['data']): Answer {
  const more = zones.flatMap(({ zone, next }) =>
    next === undefined ? [] : [`more: --zone ${zone} --after '${next}'`],
  );
  const lines = [...shown.map(lineOf), ...broken.map((one) => `NOT PROVEN ${one}`), ...more];
  const indexed = Object.fromEntries(zones.map(({ zone, indexed: upTo }) => [zone, upTo]));
  const next = Object.fromEntries(zones.map(({ zone, next: one }) => [zone, one]));
  const exit = broken.length > 0 ? 40 : shown.length > 0 ? 0 : 1;
  const text = lines.length > 0 ? lines.join('\n') : `nothing was found in ${zones.map(({ zone }) => zone).join(', ')}`;
  return { exit, text, value: { hits: shown, broken, indexed, next } };
}

function lineOf({ zone, year, index, leaf }: Shown): string {
  const { t, type, req = '', model = '', action = '', status = '' } = leaf as Leaf & Record<string, string>;
  const said = [req, action, model, status].filter((part) => part !== '').join(' ');
  return `${zone}/${year} ${String(index).padStart(6)}  ${new Date(t.origin).toISOString()}  ${type.padEnd(19)}  ${said}`;
}

export async function rebuildIndex({ edge, zone }: Arguments, headers: Record<string, string>): Promise<Answer> {
  const query = zone === undefined ? '' : `?zone=${encodeURIComponent(zone)}`;
  const response = await fetch(`${edge}/v1/audit/index${query}`, { method: 'POST', headers });
  if (!response.ok) return refused(response);
  const value: unknown = await response.json();
  return { exit: 0, text: 'the index is being built again, from the first entry', value };
}
