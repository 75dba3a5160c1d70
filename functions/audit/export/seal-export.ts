// The end of an export: checkpoints, policy, the verifier, and the manifest over all of it, signed.

import {
  encodeManifest,
  exportName,
  MANIFEST,
  MANIFEST_NOTE,
  type Manifest,
  manifestNoteText,
  POLICY,
} from '../../../shared/audit/bundle/manifest.ts';
import { originOfLog } from '../../../shared/audit/delivery.ts';
import { signNote } from '../../../shared/audit/note.ts';
import type { Policy } from '../../../shared/audit/policy.ts';
import { digestOf } from '../../../shared/audit/verify/bundle-files.ts';
import { toBase64 } from '../../../shared/base64.ts';
import { writePolicy } from '../log/log-keys.ts';
import { signedName } from '../log/log-names.ts';
import { END } from './anchor-export.ts';
import type { ExportContext } from './export-context.ts';
import { putFile, readFile, readParts } from './export-files.ts';
import { type ExportRow, isEnded, lastOf } from './export-row.ts';
import { putLinks } from './put-links.ts';

const START = 'checkpoints/start.txt';
const TOOL = 'auricle-audit-export@1';

export async function sealExport(context: ExportContext, row: ExportRow): Promise<ExportRow> {
  const { store, now } = context;
  const { zone, year, origin, start, size, anchor } = row;
  if (!anchor || size === undefined) throw new Error('an export without an end');
  const records = await readParts(store, row, row.parts);
  const note = await readFile(store, row, END);
  if (!note) throw new Error('the checkpoint of an export is gone');
  const files = records.flatMap((record) => record.files);
  const put = async (path: string, bytes: Uint8Array) => void files.push(await putFile(store, row, path, bytes));
  // Checkpoints of one size are equal.
  const begins = start !== undefined && start < size;
  if (begins) {
    const signed = await store.read('log', signedName(zone, year, start));
    if (!signed) return { ...row, state: 'failed', reason: 'known_size_unknown', ended: now() };
    await put(START, signed.bytes);
  }
  await put(END, note);
  const log = isEnded(row) ? originOfLog(context.base, zone, anchor.year ?? year) : undefined;
  await put(POLICY, writePolicy(policyOf(context, row)));
  for (const [path, bytes] of context.verifier) await put(path, bytes);
  const { links, files: linked } = await putLinks(context, row);
  files.push(...linked);
  const checkpoints = [...(begins ? [{ path: START, size: start }] : []), { path: END, size }];
  const parts = records.map(({ part }) => part);
  const manifest = manifestOf(row, { checkpoints, files, anchor, parts, links, log });
  const bytes = encodeManifest(manifest);
  await putFile(store, row, MANIFEST, bytes);
  // The key of a year that has ended may be gone: then the key of the log signs that says that the export was made.
  const signers = [origin, log ?? origin].map((name) => ({ name, key: context.signer(exportName(name)) }));
  const { name, key } = signers.find((one) => one.key) ?? {};
  if (name === undefined || !key) throw new Error(`no key here signs exports of ${origin}: AUDIT_KEY_YEARS`);
  const signed = await signNote(manifestNoteText(name, await digestOf(bytes)), [key]);
  await putFile(store, row, MANIFEST_NOTE, new TextEncoder().encode(signed));
  const all = files.reduce((sum, one) => sum + one.bytes, bytes.length);
  return { ...row, state: 'done', bytes: all, ended: now(), due: now() };
}

/** The keys of its log, and those of the later logs that show where it ended; a key is named once, for its first year. */
function policyOf({ base, policy }: ExportContext, row: ExportRow): Policy {
  const { zone, year, origin, anchor } = row;
  const own = policy(origin);
  const last = isEnded(row) ? (anchor?.year ?? year) : year;
  const years = Array.from({ length: last - year }, (_, at) => year + 1 + at);
  const all = [...own.logs, ...years.flatMap((one) => policy(originOfLog(base, zone, one)).logs)];
  const texts = all.map(({ key }) => toBase64(key.publicKey));
  return { ...own, logs: all.filter((_, at) => texts.indexOf(texts[at] ?? '') === at) };
}

type Made = Pick<Manifest, 'checkpoints' | 'files' | 'parts'> & {
  readonly links: Manifest['links'];
  readonly anchor: { readonly index: number; readonly tseq: number };
  /** The log that the anchor is in, if it is another one. */
  readonly log: string | undefined;
};

function manifestOf(row: ExportRow, { checkpoints, files, parts, anchor, links, log }: Made): Manifest {
  const { id, origin, zone, year, tenant, query, redaction, entries, disclosed, erased, purpose, request } = row;
  const { event = '', first } = row;
  const end = log === undefined ? anchor.tseq : undefined;
  const begins = row.firstTseq ?? end ?? row.after?.tseq ?? 1;
  return {
    ...{ v: 1, export_id: id, log: { origin, zone, year }, tenant, checkpoints, policy: POLICY },
    range: { tseq: [begins, end ?? row.lastTseq ?? begins - 1], index: [first?.index ?? lastOf(row), lastOf(row)] },
    ...{ query: { ...query }, redaction, counts: { entries, disclosed, erased }, parts, files, purpose },
    ...{ requested_by: request, created: new Date(row.created).toISOString() },
    anchor: { index: anchor.index, id: event, type: 'export.create', ...(log !== undefined && { log }) },
    ...(links && { links }),
    ...{ tool: TOOL, schema: { leaf: 1, ocsf: '1.8.0', fhir: 'R4, patterns of BALP 1.1', parquet: 2 } },
  };
}
