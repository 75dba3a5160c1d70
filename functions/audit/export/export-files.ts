// Files of an export, as they lie in storage: the area `exports`, apart from the log, since they disclose what the log
// hides and are removed again.
import type { BundlePart, FileDigest } from '../../../shared/audit/bundle/manifest.ts';
import { digestOf } from '../../../shared/audit/verify/bundle-files.ts';
import type { LogStore } from '../log/log-store.ts';
import type { ExportRow } from './export-row.ts';

/** Files of an export that are removed concurrently. */
const EXPORT_REMOVALS_MAX = 100;

type Place = Pick<ExportRow, 'zone' | 'tenant' | 'id' | 'restarts'>;

const folderOf = ({ zone, tenant, id, restarts = 0 }: Place): string =>
  `${zone}/${tenant}/${id}${restarts === 0 ? '' : `.${restarts}`}/`;
/** Prefix of internal files: no path of a bundle begins with a dot. */
const partName = (part: number): string => `.job/${String(part).padStart(6, '0')}`;

/** Facts of a finished part. */
export interface PartRecord {
  readonly part: BundlePart;
  readonly files: readonly FileDigest[];
  /** The last entry in it. */
  readonly last?: { readonly index: number; readonly tseq?: number };
}

/** A step that is done again writes its files again: whatever came of the first time, the last is what is listed. */
export async function putFile(store: LogStore, place: Place, path: string, bytes: Uint8Array): Promise<FileDigest> {
  const name = folderOf(place) + path;
  for (;;) {
    if (await store.create('exports', name, bytes)) break;
    const stored = await store.read('exports', name);
    if (stored && (await store.replace('exports', name, bytes, stored.version))) break;
  }
  return { path, sha256: await digestOf(bytes), bytes: bytes.length };
}

export const readFile = async (store: LogStore, place: Place, path: string): Promise<Uint8Array | undefined> =>
  (await store.read('exports', folderOf(place) + path))?.bytes;

export async function putPart(store: LogStore, place: Place, at: number, record: PartRecord): Promise<void> {
  await putFile(store, place, partName(at), new TextEncoder().encode(JSON.stringify(record)));
}

export async function readParts(store: LogStore, place: Place, count: number): Promise<PartRecord[]> {
  const records: PartRecord[] = [];
  for (let at = 0; at < count; at += 1) {
    const bytes = await readFile(store, place, partName(at));
    if (!bytes) throw new Error(`part ${at} of the export ${place.id} is gone`);
    records.push(JSON.parse(new TextDecoder().decode(bytes)) as PartRecord);
  }
  return records;
}

/** Removes the files of an export, those from before its restarts too: a step that lost its race may have written there. */
export async function removeFiles(store: LogStore, { restarts = 0, ...place }: Place): Promise<void> {
  for (let at = 0; at <= restarts; at += 1) await removeFolder(store, folderOf({ ...place, restarts: at }));
}

async function removeFolder(store: LogStore, folder: string): Promise<void> {
  for (;;) {
    const names = await store.list('exports', folder, EXPORT_REMOVALS_MAX);
    if (names.length === 0) return;
    await Promise.all(names.map((name) => store.remove('exports', name)));
  }
}
