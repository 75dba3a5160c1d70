// Decides whether a tenant may have one more export: each reads the log and is stored until it expires.
// Concurrent requests may exceed the bound by the number of slots (`export-row.ts`).

import { MiB } from '../../../shared/bytes.ts';
import { DAY_MS } from '../../../shared/day.ts';
import { type Refusal, refuse } from '../../../shared/refusal.ts';
import type { Rows } from '../../store/rows.ts';
import { EXPORT_STORED_MS, type ExportRow, listSince } from './export-row.ts';

/**
 * Exports of a tenant in a zone per 24 hours: one each half hour, while an auditor needs one a quarter. Each
 * reads the log and stays a week.
 */
export const EXPORTS_PER_DAY_MAX = 48;
/**
 * Stored exports of a tenant in a zone; beyond it no export starts. A year of 100 million entries takes some
 * tens of GiB with derived formats.
 */
export const EXPORTS_STORED_BYTES = 256 * 1_024 * MiB;

export async function refusalOfMore(
  rows: Rows,
  owner: Pick<ExportRow, 'zone' | 'tenant'>,
  now: number,
): Promise<Refusal | undefined> {
  const keep = EXPORT_STORED_MS;
  // More than there can be in that time, but for those that were never on record.
  const most = Math.ceil(keep / DAY_MS + 1) * EXPORTS_PER_DAY_MAX;
  return refusalOf(await listSince(rows, owner, now - keep, most), now);
}

/** `known`: the tenant's exports that may have files, newest first. */
export function refusalOf(known: readonly ExportRow[], now: number): Refusal | undefined {
  // An export that the log does not have may be requested again.
  const today = known.filter(({ created, reason }) => created > now - DAY_MS && reason !== 'not_recorded');
  const oldest = today[EXPORTS_PER_DAY_MAX - 1];
  if (oldest) return spent(`${EXPORTS_PER_DAY_MAX} in 24 hours`, oldest.created + DAY_MS);
  const stored = known.filter(({ state }) => state === 'done');
  let over = stored.reduce((sum, { bytes = 0 }) => sum + bytes, 0) - EXPORTS_STORED_BYTES;
  if (over < 0) return undefined;
  // The oldest make room first.
  const first = stored.toReversed().find(({ bytes = 0 }) => {
    over -= bytes;
    return over < 0;
  });
  return spent(`${EXPORTS_STORED_BYTES} bytes of them`, (first?.ended ?? now) + EXPORT_STORED_MS);
}

const spent = (most: string, again: number): Refusal =>
  refuse('exports_spent', { most, again: new Date(again).toISOString() });
