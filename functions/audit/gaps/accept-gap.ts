// Accepting a gap of the audit log: the entry of the log first, then the row that health counts.
import type { Gap } from '../../../shared/audit/gaps.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import type { Rows } from '../../store/rows.ts';
import { acceptedRow, readGaps } from '../entries/gap-rows.ts';
import { type EraseContext, type Officer, officerOf } from '../erase/erase-context.ts';

export interface Acceptance extends Officer {
  readonly gap: string;
  readonly reason: string;
  /** Tenant of the operator. */
  readonly tenant: string;
}

/** A gap that was accepted before stays as it is. */
export async function acceptGap(
  { rows, zone, now, report }: Pick<EraseContext, 'zone' | 'now' | 'report'> & { readonly rows: Rows },
  { gap, reason, tenant, ...officer }: Acceptance,
): Promise<Result<Gap>> {
  const found = (await readGaps(rows, zone, now())).find((one) => one.gap === gap);
  if (!found) return no(refuse('gap_unknown'));
  if (found.accepted) return ok(found);
  const { outbox, epoch, from, to } = found;
  const missing = { gap, outbox, epoch, from, ...(to !== undefined && { to }) };
  const reported = await report({ type: 'gap.accept', tenant, ...missing, reason, ...officerOf(officer) });
  if (!reported.ok) return reported;
  const at = now();
  const { partition, key, value = {} } = acceptedRow(zone, { ...missing, at });
  await rows.commit(partition, [{ type: 'put', key, value }]);
  return ok({ ...found, accepted: { at } });
}
