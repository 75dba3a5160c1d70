// Collects one part of an export: reads the log until the part is full, the step's bound is reached, or the
// anchor. A repetition makes the same files unless a subject was erased meanwhile.
import { blocksBetween } from '../../../shared/audit/bundle/cover.ts';
import { formatEntryLine } from '../../../shared/audit/bundle/entry-line.ts';
import { type BundlePart, type FileDigest, numbered } from '../../../shared/audit/bundle/manifest.ts';
import { derivedFormats, deriveFile } from '../../../shared/audit/derived/formats.ts';
import { type DerivedEntry, DerivedRow } from '../../../shared/audit/derived/row.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { type Hash, hashLeaf } from '../../../shared/audit/tree.ts';
import { isRequested } from '../../../shared/audit/verify/disclosed.ts';
import { concat } from '../../../shared/bytes.ts';
import { LogFiles } from '../log/log-files.ts';
import { SidecarReader } from '../sidecar/sidecar.ts';
import { END } from './anchor-export.ts';
import { discloseLeaf } from './disclose-leaf.ts';
import type { ExportContext } from './export-context.ts';
import { putFile, putPart, readFile } from './export-files.ts';
import { type ExportRow, lastOf } from './export-row.ts';
import { type OwnLeaf, ownLeaves } from './own-leaves.ts';

/** A part in the making. */
class Draft {
  readonly entries: string[] = [];
  readonly proofs: Hash[] = [];
  readonly disclosures: string[] = [];
  readonly derivable: DerivedEntry[] = [];
  bytes = 0;
  last: OwnLeaf | undefined;
}

export async function collectPart(context: ExportContext, row: ExportRow): Promise<ExportRow> {
  const { zone, year, size = 0 } = row;
  const end = lastOf(row);
  const log = new LogFiles(context.store, zone, year, size);
  // A cached key outlives an erasure in this process: each step reads the keys that exist now.
  const sidecar = new SidecarReader({ store: context.store, zone, year }, context.keys(zone).fresh());
  const draft = new Draft();
  let next = row;
  let bundle = Math.floor(row.at / TILE_WIDTH);
  const until = Math.min(log.bundles, bundle + context.scanBundles);
  for (; bundle < until && draft.bytes < context.partBytes; bundle += 1) {
    if (bundle * TILE_WIDTH > end) break;
    await context.breathe();
    next = await takeBundle(next, draft, { log, sidecar, bundle, end });
  }
  const finished = bundle * TILE_WIDTH > end || bundle >= log.bundles;
  next = { ...next, at: Math.min(bundle * TILE_WIDTH, size) };
  if (finished) {
    await cover(next, draft, log, size);
    next = { ...next, covered: size };
  }
  if (draft.entries.length === 0 && !finished) return { ...next, due: context.now() };
  await writePart(context, next, draft);
  return { ...next, parts: next.parts + 1, due: context.now() };
}

interface Bundle {
  readonly log: LogFiles;
  readonly sidecar: SidecarReader;
  readonly bundle: number;
  /** The last entry of the export. */
  readonly end: number;
}

async function takeBundle(row: ExportRow, draft: Draft, { log, sidecar, bundle, end }: Bundle): Promise<ExportRow> {
  const from = bundle * TILE_WIDTH;
  const entries = await log.entries(bundle);
  const own = ownLeaves(row.tenant, from, entries).filter(({ index }) => index <= end);
  const begin = row.first === undefined ? own.findIndex((leaf) => leaf.index === end || isReached(row, leaf)) : 0;
  const leaves = begin < 0 ? [] : own.slice(begin);
  if (leaves.length === 0) return row;
  const shown = await discloseBundle(row, { from, entries, leaves }, sidecar);
  let next = row;
  for (const leaf of leaves) {
    await cover(next, draft, log, leaf.index);
    draft.entries.push(formatEntryLine(leaf.index, leaf.text));
    draft.bytes += leaf.text.length;
    draft.last = leaf;
    const { line, values, counted } = shown.get(leaf.index) ?? { line: undefined, values: {}, counted: undefined };
    if (line !== undefined) draft.disclosures.push(line);
    if (isRequested(row, leaf.facts)) draft.derivable.push(derivableOf(leaf, values));
    next = countedRow(next, leaf, counted);
  }
  return next;
}

function countedRow(row: ExportRow, { index, facts }: OwnLeaf, counted: 'disclosed' | 'erased' | undefined): ExportRow {
  const { tseq } = facts;
  return {
    ...row,
    covered: index + 1,
    entries: row.entries + 1,
    ...(counted && { [counted]: row[counted] + 1 }),
    first: row.first ?? { index, ...(tseq !== undefined && { tseq }) },
    ...(tseq !== undefined && { firstTseq: row.firstTseq ?? tseq, lastTseq: tseq }),
  };
}

/** Reports whether the export begins at or before this leaf. */
const isReached = ({ query, begin = 0 }: ExportRow, { index, facts }: OwnLeaf): boolean =>
  index >= begin && (query.tseq_from === undefined || (facts.tseq ?? 0) >= query.tseq_from);

interface ReadBundle {
  /** Index of the first entry. */
  readonly from: number;
  readonly entries: readonly Uint8Array[];
  /** Requested leaves of the tenant. */
  readonly leaves: readonly OwnLeaf[];
}

async function discloseBundle(
  row: ExportRow,
  { from, entries, leaves }: ReadBundle,
  sidecar: SidecarReader,
): Promise<Map<number, ReturnType<typeof discloseLeaf>>> {
  const requested = leaves.filter(
    ({ facts }) => facts.sd && row.redaction !== 'auditor-min' && isRequested(row, facts),
  );
  const found = new Map<number, ReturnType<typeof discloseLeaf>>();
  if (requested.length === 0) return found;
  // Hidden values of other tenants stay encrypted.
  const own = new Set(requested.map(({ index }) => index - from));
  const only = entries.map((entry, at) => (own.has(at) ? entry : new Uint8Array(0)));
  const hidden = await sidecar.read(from, only);
  for (const { index, facts } of requested)
    found.set(index, discloseLeaf(index, facts.sd ?? {}, hidden[index - from], row.redaction));
  return found;
}

const hex = (hash: Hash): string => Buffer.from(hash).toString('hex');

const derivableOf = ({ index, text, facts }: OwnLeaf, shown: DerivedEntry['shown']): DerivedEntry => ({
  ...{ index, leaf: facts.leaf, shown },
  leafHash: hex(hashLeaf(new TextEncoder().encode(text))),
});

/** Hashes of what lies between the last entry and the one at `to`. */
async function cover({ covered, start, size = 0 }: ExportRow, draft: Draft, log: LogFiles, to: number): Promise<void> {
  const cuts = start === undefined ? [size] : [start, size];
  for (const { height, at } of blocksBetween(covered, to, cuts)) draft.proofs.push(await log.subtree(height, at));
}

async function writePart({ store, breathe }: ExportContext, row: ExportRow, draft: Draft): Promise<void> {
  const [at, files]: [number, FileDigest[]] = [row.parts, []];
  const put = async (name: string, bytes: Uint8Array): Promise<string> => {
    const path = numbered(name, at);
    files.push(await putFile(store, row, path, bytes));
    return path;
  };
  const encode = (lines: readonly string[]) => new TextEncoder().encode(lines.join(''));
  const note = await readFile(store, row, END);
  if (!note) throw new Error('the checkpoint of an export is gone');
  const context = { origin: row.origin, note: new TextDecoder().decode(note) };
  const derived: Record<string, string> = {};
  const [entries, proofs] = [
    await put('entries.ndjson', encode(draft.entries)),
    await put('proofs/subtrees.bin', concat(...draft.proofs)),
  ];
  const shows = row.redaction !== 'auditor-min';
  const disclosures = shows ? await put('disclosures.ndjson', encode(draft.disclosures)) : undefined;
  const rows = draft.derivable.map((entry) => new DerivedRow(entry, context));
  for (const format of row.formats) {
    await breathe();
    derived[format] = await put(derivedFormats[format].file, deriveFile(format, rows, context));
  }
  const part: BundlePart = { entries, proofs, ...(disclosures !== undefined && { disclosures }), derived };
  const { last } = draft;
  const tseq = last?.facts.tseq;
  await putPart(store, row, at, {
    ...{ part, files },
    ...(last && { last: { index: last.index, ...(tseq !== undefined && { tseq }) } }),
  });
}
