// Decides whether a tenant may have one more export: each reads the log and is stored until it expires.
// Concurrent requests may exceed the bound by the number of slots (`export-row.ts`).
import { DAY_MS } from '../../../shared/day.ts';
import { limits } from '../../../shared/limits.ts';
import { type Refusal, refuse } from '../../../shared/refusal.ts';
import type { Rows } from '../../store/rows.ts';
import { type ExportRow, listSince } from './export-row.ts';

export async function refusalOfMore(
  rows: Rows,
  whose: Pick<ExportRow, 'zone' | 'tenant'>,
  now: number,
): Promise<Refusal | undefined> {
  const keep = limits.auditExportKeepMs.value;
  // More than there can be in that time, but for those that were never on record.
  const most = Math.ceil(keep / DAY_MS + 1) * limits.auditExportsPerDay.value;
  return refusalOf(await listSince(rows, whose, now - keep, most), now);
}

/** `known`: the tenant's exports that may have files, newest first. */
export function refusalOf(known: readonly ExportRow[], now: number): Refusal | undefined {
  const { auditExportsPerDay: perDay, auditExportKeptBytes: most, auditExportKeepMs: keep } = limits;
  // An export that the log does not have may be requested again.
  const today = known.filter(({ created, reason }) => created > now - DAY_MS && reason !== 'not_recorded');
  const oldest = today[perDay.value - 1];
  if (oldest) return spent(`${perDay.value} in 24 hours`, oldest.created + DAY_MS);
  const kept = known.filter(({ state }) => state === 'done');
  let over = kept.reduce((sum, { bytes = 0 }) => sum + bytes, 0) - most.value;
  if (over < 0) return undefined;
  // The oldest make room first.
  const first = kept.toReversed().find(({ bytes = 0 }) => {
    over -= bytes;
    return over < 0;
  });
  return spent(`${most.value} bytes of them`, (first?.ended ?? now) + keep.value);
}

const spent = (most: string, again: number): Refusal =>
  refuse('exports_spent', { most, again: new Date(again).toISOString() });
