// What an upload has used is told to the edge, which keeps the tenant's allowance and the record of who did what. The row
// is made in the transaction that ends the run and goes when the edge has answered; the edge books a run once.
import { refusals } from '../../shared/refusal.ts';
import { isUploadId } from '../../shared/upload/paths.ts';
import type { UploadUsage } from '../../shared/upload/usage.ts';
import { endOf } from '../store/rows.ts';
import type { Office } from './office.ts';
import { type UploadRecord, usageRowKey } from './record.ts';

/** Rows of one look; the next look goes on. */
const BOOKED_MAX = 200;

/** `undefined` when no file had arrived: then nothing was used. */
export function usageOf({ tenant, id, asked, state, created, updated }: UploadRecord): UploadUsage | undefined {
  const { bytes, status, seconds = 0, refusal } = state;
  // Text is not counted in seconds of sound.
  if (bytes === undefined || !isUploadId(id)) return undefined;
  const done = status === 'done';
  return {
    tenant,
    upload: id,
    run: state.run,
    // An edge that does not say so yet keeps it where the tenant's uploads lie, in all but mixed tokens.
    home: asked.home ?? asked.zone,
    ...(asked.subject !== undefined && { subject: asked.subject }),
    class: asked.class,
    model: asked.model,
    ...(asked.language !== undefined && { language: asked.language }),
    ...(done
      ? { status: 200 }
      : (refusal && { status: refusals[refusal.reason].status, reason: refusal.reason }) || GONE),
    seconds: done ? seconds : 0,
    bytes,
    milliseconds: updated - created,
  };
}

/** Cancelled: as a caller that went away. */
const GONE = { status: 499, reason: 'client_gone' };

/** Tells of one run; when that fails, the timer tries again. */
export async function bookUsage(office: Office, run: Pick<UploadUsage, 'tenant' | 'upload' | 'run'>): Promise<void> {
  const row = await office.rows.read(run.tenant, usageRowKey(run));
  if (row) await book(office, row.value as UploadUsage).catch(() => office.log({ ...line(run), detail: 'later' }));
}

/** Tells of all that was not heard yet. @returns when the edge is away: the rest would fail, too. */
export async function bookAll(office: Office, tenant: string): Promise<void> {
  for (const { value } of await office.rows.scan(tenant, 'b!', endOf('b!'), BOOKED_MAX)) {
    const usage = value as UploadUsage;
    try {
      await book(office, usage);
    } catch {
      office.log({ ...line(usage), detail: 'the edge does not answer' });
      return;
    }
  }
}

async function book(office: Office, usage: UploadUsage): Promise<void> {
  await office.usage.tell(usage);
  await office.rows.commit(usage.tenant, [{ type: 'remove', key: usageRowKey(usage) }]);
}

const line = ({ tenant, upload }: Pick<UploadUsage, 'tenant' | 'upload'>) =>
  ({ what: 'unbooked', tenant, upload }) as const;
