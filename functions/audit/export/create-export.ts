// An export begins as an entry of the log: what it holds ends with the leaf that says that it was made.
import type { NewExport } from '../../../shared/audit/bundle/contract.ts';
import { originOfLog } from '../../../shared/audit/delivery.ts';
import type { EventDraft } from '../../../shared/audit/event.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { EXPORT_ANCHOR_MS } from '../../../shared/audit/verify/numbers.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { newestState } from '../log/acknowledge.ts';
import { publishedSize } from '../log/publish-checkpoint.ts';
import { readPrevious } from '../log/read-opening.ts';
import { refusalOfMore } from './export-budget.ts';
import type { ExportContext } from './export-context.ts';
import { type ExportRow, findExport, insertExport, replaceExport } from './export-row.ts';

export async function createExport(
  context: ExportContext,
  zone: string,
  request: NewExport,
  subject?: string,
): Promise<Result<ExportRow>> {
  const { rows, now } = context;
  const { tenant, query, known_size: known } = request;
  const problem = problemOf(query);
  if (problem) return no(refuse('field_invalid', problem));
  const found = await logOf(context, zone, request);
  if (!found.ok) return found;
  const { year, origin, published, end } = found.value;
  if (known !== undefined && known > published)
    return no(refuse('field_invalid', { field: 'known_size', rule: `the log has ${published} entries` }));
  const start = known ?? (published > 0 ? published : undefined);
  const at = now();
  const spent = await refusalOfMore(rows, { zone, tenant }, at);
  if (spent) return no(spent);
  const fresh: ExportRow = {
    ...{
      v: 1,
      id: exportId(zone, at, context.random(10)),
      tenant,
      zone,
      year,
      origin,
      state: 'asked',
      created: at,
      query,
    },
    ...{ request: request.request, purpose: request.purpose, redaction: request.redaction },
    formats: [...new Set(request.formats)],
    ...(start !== undefined && { start }),
    // The leaf is not in the log yet: it comes after all that is published now.
    told: end,
    ...{ at: 0, covered: 0, parts: 0, entries: 0, disclosed: 0, erased: 0, tries: 0 },
    due: at + EXPORT_ANCHOR_MS,
  };
  if (!(await insertExport(rows, fresh))) return no(refuse('exports_open'));
  const reported = await context.report(zone, { ...eventOf(fresh), ...(subject !== undefined && { subject }) });
  const stored = await findExport(rows, zone, tenant, fresh.id);
  if (!stored) throw new Error('an export is gone');
  const next: ExportRow = reported.ok
    ? { ...stored.row, state: 'anchoring', event: reported.value.id, due: at }
    : { ...stored.row, state: 'failed', reason: 'not_recorded', ended: at };
  if (!(await replaceExport(rows, next, stored))) throw new Error('an export is being made before it was begun');
  return reported.ok ? ok(next) : no(reported.refusal);
}

interface RequestedLog {
  readonly year: number;
  readonly origin: string;
  readonly published: number;
  /** The end of the newest log, stated in the export's entry. */
  readonly end: { readonly year: number; readonly at: number };
}

/** Returns the requested log, if it exists and can hold the requested entries. */
async function logOf(
  { store, base }: ExportContext,
  zone: string,
  { tenant, query }: NewExport,
): Promise<Result<RequestedLog>> {
  const wrong = (field: string, rule: string) => no(refuse('field_invalid', { field, rule }));
  const state = await newestState(store, zone);
  if (!state) return no(refuse('audit_closed', undefined, 'nothing was ever logged'));
  const { year = state.year, from, tseq_from } = query;
  const newest = await publishedSize({ store, zone, year: state.year });
  const published = year === state.year ? newest : await publishedSize({ store, zone, year });
  if (year > state.year || (year < state.year && published === 0))
    return wrong('year', `there is no log of ${year} in ${zone}`);
  const previous = year === state.year ? state.previous : await readPrevious(store, zone, year);
  if (previous && from !== undefined && from < Date.UTC(year))
    return wrong('from', `must not be before ${year}: what came before is in another log, ${previous.origin}`);
  if (year < state.year && from !== undefined && from >= Date.UTC(year + 1))
    return wrong('from', `must be in ${year}, whose log has ended`);
  const last = state.tseq[tenant] ?? 0;
  if (tseq_from !== undefined && tseq_from > last + 1)
    return wrong('tseq_from', `must not be after ${last + 1}, the next number of the tenant`);
  const end = { year: state.year, at: newest };
  return ok({ year, origin: originOfLog(base, zone, year), published, end });
}

/** The id contains the zone. */
const exportId = (zone: string, now: number, random: Uint8Array): string => `${zone}-${eventId(now, random)}`;

function problemOf({ from, to, tseq_from, tseq_to }: NewExport['query']): { field: string; rule: string } | undefined {
  if (from !== undefined && to !== undefined && from >= to) return { field: 'to', rule: 'must be after from' };
  if (tseq_from !== undefined && tseq_to !== undefined && tseq_from > tseq_to)
    return { field: 'tseq_to', rule: 'must not be before tseq_from' };
  return undefined;
}

const eventOf = ({ id, tenant, request, formats, redaction, purpose, query }: ExportRow): EventDraft => ({
  type: 'export.create',
  ...{ tenant, request, export: id, format: formats.join(',') || 'none', redaction, purpose },
  ...(Object.keys(query).length > 0 && { range: JSON.stringify(query) }),
  ...(query.tseq_from !== undefined && { from: query.tseq_from }),
});
