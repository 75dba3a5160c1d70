// Reports the usage of uploads and spoken documents to the edge, which keeps the tenant's allowance and record. The row is
// inserted in the transaction that ends the run and goes when the edge has answered; the edge books a run
// once.
import { DAY_MS } from '../../shared/day.ts';
import { isUploadId } from '../../shared/jobs/paths.ts';
import { isDocumentId } from '../../shared/jobs/project-id.ts';
import type { UploadUsage } from '../../shared/jobs/usage.ts';
import { refusals } from '../../shared/refusal.ts';
import { endOf } from '../store/rows.ts';
import { UsageRefused } from '../store/usage.ts';
import type { JobContext } from './context.ts';
import { type UploadRecord, usageRowKey } from './record.ts';

/** Rows that one sweep books; the next one continues. */
const SWEEP_BOOKINGS_MAX = 200;
/**
 * Days after which usage that the edge refuses is given up: a month of accounts, and half of
 * USAGE_BOOKED_DAYS.
 */
export const USAGE_REPORT_DAYS = 31;

/**
 * Returns the usage of a run that has ended; `undefined` when no file had arrived, and of a project, whose documents
 * count. `again`: the document was whole before. Then its changed segments count as one of mean length.
 */
export function usageOf(record: UploadRecord, again: boolean): UploadUsage | undefined {
  const { tenant, id, request, state, created, updated } = record;
  const { bytes, status, seconds = 0, refusal, edition = 0, pieces } = state;
  if (bytes === undefined || !(isUploadId(id) || isDocumentId(id))) return undefined;
  const done = status === 'done';
  const made = again && isDocumentId(id) ? seconds / Math.max(1, pieces) : seconds;
  return {
    tenant,
    upload: id,
    run: state.run,
    ...(edition > 0 && isDocumentId(id) && { edition }),
    // The zone of the upload, where the edge named none.
    home: request.home ?? request.zone,
    ...(request.subject !== undefined && { subject: request.subject }),
    class: request.class,
    model: request.model,
    ...(request.language !== undefined && { language: request.language }),
    ...(done
      ? { status: 200 }
      : (refusal && { status: refusals[refusal.reason].status, reason: refusal.reason }) || GONE),
    seconds: done ? made : 0,
    bytes,
    milliseconds: updated - created,
  };
}

/** Cancelled: as a caller that went away. */
const GONE = { status: 499, reason: 'client_gone' };

/** The row: usage to book, and when it was written. */
type UsageRow = UploadUsage & { readonly since: number };

/** Books one run; when that fails, the timer tries again. */
export async function bookUsage(
  context: JobContext,
  run: Pick<UploadUsage, 'tenant' | 'upload' | 'run' | 'edition'>,
): Promise<void> {
  const row = await context.rows.read(run.tenant, usageRowKey(run));
  if (row) await book(context, row.value as UsageRow).catch(() => context.log({ ...line(run), detail: 'later' }));
}

/**
 * Books all runs that wait; the next sweep continues. A run that the edge refuses delays no other and is
 * dropped when it is old. While the edge does not answer, the sweep stops: the rest would fail, too.
 */
export async function bookAll(context: JobContext, tenant: string): Promise<void> {
  let booked = 0;
  for (let from = 'b!'; booked < SWEEP_BOOKINGS_MAX; ) {
    const rows = await context.rows.scan(tenant, from, endOf('b!'), SWEEP_BOOKINGS_MAX);
    for (const { value } of rows) {
      const usage = value as UsageRow;
      try {
        await book(context, usage);
        booked += 1;
      } catch (error) {
        if (!(error instanceof UsageRefused)) {
          context.log({ ...line(usage), detail: 'the edge does not answer' });
          return;
        }
        await keepOrGiveUp(context, usage, error);
      }
    }
    const last = rows.at(-1);
    if (!last || rows.length < SWEEP_BOOKINGS_MAX) return;
    from = `${last.key}!`;
  }
}

async function keepOrGiveUp(context: JobContext, usage: UsageRow, { status }: UsageRefused): Promise<void> {
  const old = usage.since + USAGE_REPORT_DAYS * DAY_MS <= context.now();
  if (old) await forgetUsage(context, usage);
  context.log({ ...line(usage), detail: old ? 'given up' : 'refused', count: status });
}

async function book(context: JobContext, { since: _, ...usage }: UsageRow): Promise<void> {
  await context.usage.book(usage);
  await forgetUsage(context, usage);
}

const forgetUsage = (context: JobContext, usage: UploadUsage) =>
  context.rows.commit(usage.tenant, [{ type: 'remove', key: usageRowKey(usage) }]);

const line = ({ tenant, upload }: Pick<UploadUsage, 'tenant' | 'upload'>) =>
  ({ what: 'unbooked', tenant, upload }) as const;
