// auricle audit tail|show|receipt: entries of a log as they stand there.
import { openCheckpoint } from '../../shared/audit/checkpoint.ts';
import type { Leaf } from '../../shared/audit/leaf.ts';
import { readReceipt } from '../../shared/audit/receipt.ts';
import { TILE_WIDTH } from '../../shared/audit/tile.ts';
import { type Answer, wrong } from './answer.ts';
import type { Found } from './audit-find.ts';
import { fetchCheckpoint, fetchEntries, Invalid, leafOf } from './audit-log.ts';

/** Entries that `tail` shows. */
const TAIL = 20;

interface Entry {
  readonly index: number;
  readonly leaf: Leaf | undefined;
}

async function bundleOf({ reader }: Found, bundle: number, size: number): Promise<Entry[]> {
  const entries = await fetchEntries(reader, bundle, size);
  return entries.map((entry, at) => ({ index: bundle * TILE_WIDTH + at, leaf: leafOf(entry) }));
}

async function entriesFrom(found: Found, from: number, size: number): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let bundle = Math.floor(from / TILE_WIDTH); bundle * TILE_WIDTH < size; bundle += 1)
    entries.push(...(await bundleOf(found, bundle, size)));
  return entries.filter(({ index }) => index >= from);
}

/** The last ones, or the last ones of a type: looked for from the end of the log on. */
export async function tail(found: Found, type: string | undefined): Promise<Answer> {
  const { size } = (await fetchCheckpoint(found.reader)).checkpoint;
  let entries: Entry[] = [];
  for (let bundle = Math.ceil(size / TILE_WIDTH) - 1; bundle >= 0 && entries.length < TAIL; bundle -= 1) {
    const some = await bundleOf(found, bundle, size);
    entries = [...some.filter(({ leaf }) => type === undefined || leaf?.type === type), ...entries];
  }
  const last = entries.slice(-TAIL);
  if (last.length > 0 || type === undefined)
    return { exit: 0, text: last.map(lineOf).join('\n'), value: { size, entries: last } };
  return { exit: 1, text: `nothing of the type ${type} is in the log`, value: { size, entries: last } };
}

/** One line: where, when, what, for whom, how. */
function lineOf({ index, leaf }: Entry): string {
  if (!leaf) return `${index}  (written by a newer version)`;
  const { t, type, tn = '-', req = '', action = '', status = '', reason = '' } = leaf as Leaf & Record<string, unknown>;
  const said = [action, status, reason].filter((part) => part !== '').join(' ');
  return [String(index).padStart(6), new Date(t.origin).toISOString(), type.padEnd(19), tn, req, said]
    .join('  ')
    .trimEnd();
}

export async function show(found: Found, what: string): Promise<Answer> {
  const { size } = (await fetchCheckpoint(found.reader)).checkpoint;
  const index = /^\d+$/.test(what) ? Number(what) : undefined;
  if (index !== undefined && index >= size) return wrong(`the log has ${size} entries`);
  const all = index === undefined ? await entriesFrom(found, 0, size) : await entriesFrom(found, index, size);
  const entries = index === undefined ? all.filter(({ leaf }) => leaf?.req === what) : all.slice(0, 1);
  const text = entries.map((entry) => JSON.stringify(entry, undefined, 2)).join('\n');
  if (entries.length > 0) return { exit: 0, text, value: { size, entries } };
  return { exit: 1, text: `nothing of the request ${what} is in the log`, value: { size, entries } };
}

export async function receipts(found: Found, what: string): Promise<Answer> {
  const { size } = (await fetchCheckpoint(found.reader)).checkpoint;
  const isIndex = /^\d+$/.test(what);
  if (isIndex && Number(what) >= size) return wrong(`the log has ${size} entries`);
  const all = isIndex ? [] : (await entriesFrom(found, 0, size)).filter(({ leaf }) => leaf?.req === what);
  const indexes = isIndex ? [Number(what)] : all.map(({ index }) => index);
  if (indexes.length === 0) return { exit: 1, text: `nothing of the request ${what} is in the log`, value: [] };
  const made: { index: number; receipt: string }[] = [];
  for (const index of indexes) {
    const bytes = await found.reader.fetch(`receipt/${index}`);
    const receipt = readReceipt(bytes);
    const note = receipt?.index === index ? new TextEncoder().encode(receipt.checkpoint) : new Uint8Array();
    if (!(await openCheckpoint(note, found.reader.verifier))) throw new Invalid(`the receipt of ${index} is none`);
    made.push({ index, receipt: new TextDecoder().decode(bytes) });
  }
  return { exit: 0, text: made.map(({ receipt }) => receipt.trimEnd()).join('\n\n'), value: made };
}
