// Exports after an erasure. The erased subject's keys are destroyed first, so an export that begins later discloses nothing
// of the subject. An earlier one that discloses hidden values of the tenant stops being served, or begins again if it is
// still in the making. A repeated call, after a crash at any point, ends in the same state.
import type { Rows } from '../../store/rows.ts';
import type { LogStore } from '../log/log-store.ts';
import { removeFiles } from './export-files.ts';
import { type ExportRow, everyExport, findExport, replaceExport, type StoredExport } from './export-row.ts';

export interface WithdrawContext {
  readonly rows: Rows;
  readonly store: LogStore;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Withdraws the exports of a tenant in a zone. */
export async function withdrawExports(context: WithdrawContext, zone: string, tenant: string): Promise<void> {
  for await (const stored of everyExport(context.rows, zone, tenant)) await withdrawOne(context, stored);
}

async function withdrawOne({ rows, store, now }: WithdrawContext, listed: StoredExport): Promise<void> {
  let stored: StoredExport | undefined = listed;
  while (stored) {
    const { row }: StoredExport = stored;
    const next = withdrawn(row, now());
    // The swap comes first: a step that has the old keys loses its race, and nothing of it is served.
    if (next && !(await replaceExport(rows, next, stored))) {
      stored = await findExport(rows, row.zone, row.tenant, row.id);
      continue;
    }
    if (next || row.reason === ERASED) await removeFiles(store, row);
    else if (row.restarts !== undefined) await removeFiles(store, { ...row, restarts: row.restarts - 1 });
    return;
  }
}

const ERASED = 'subject_erased';

/** The export after an erasure; `undefined` when it discloses nothing from before. */
export function withdrawn(row: ExportRow, now: number): ExportRow | undefined {
  if (row.redaction === 'auditor-min') return undefined;
  if (row.state === 'done') return { ...row, state: 'expired', reason: ERASED };
  if (row.state !== 'collecting') return undefined;
  const { size, back, begin, first, firstTseq, lastTseq, before, after, seek, linked, ...rest } = row;
  const nothing = { at: 0, covered: 0, parts: 0, entries: 0, disclosed: 0, erased: 0, tries: 0 };
  return { ...rest, ...nothing, state: 'anchoring', restarts: (row.restarts ?? 0) + 1, due: now };
}
