// Fairness: the queue of a model in a zone holds at most a window of a tenant's jobs, the rest wait in the
// tenant's partition. So 10,000 files of one tenant precede the one file of another by a window at most, and
// a model without agents blocks no other.
import { isInScope } from '../caller/request-scope.ts';
import { endOf, type Row } from '../store/rows.ts';
import type { JobContext } from './context.ts';
import { JOB_RACE_TRIES_MAX, JOB_SENDING_MS, UPLOAD_WINDOW } from './limits.ts';
import { type JobRecord, jobRowKey, jobsPrefix, type QueueLane, readJobRecord } from './record.ts';

/** Runs of a queue's release: the current one, and the next. */
interface Runs {
  current: Promise<void>;
  next: Promise<void> | undefined;
}

const lanes = new WeakMap<JobContext, Map<string, Runs>>();

/**
 * Moves waiting jobs into the queue while there is room. Timers and events of one process share runs for a lane, in place
 * of racing for the same rows: a call that finds a run under way waits for the next one, which serves all such calls.
 * A request has bounds that a shared run does not have and must not get: it runs its own.
 */
export function release(context: JobContext, tenant: string, lane: QueueLane): Promise<void> {
  if (isInScope()) return moveWaiting(context, tenant, lane);
  const known = lanes.get(context) ?? new Map<string, Runs>();
  lanes.set(context, known);
  const key = `${tenant} ${jobsPrefix('w', lane)}`;
  const run = () => moveWaiting(context, tenant, lane).finally(() => settleRun(known, key));
  const runs = known.get(key);
  if (!runs) {
    const current = run();
    known.set(key, { current, next: undefined });
    return current;
  }
  runs.next ??= runs.current.then(run, run);
  return runs.next;
}

function settleRun(known: Map<string, Runs>, key: string): void {
  const next = known.get(key)?.next;
  if (next) known.set(key, { current: next, next: undefined });
  else known.delete(key);
}

/** Two processes at once may take different jobs and overshoot the window by what one of them moves; one moves a job. */
async function moveWaiting(context: JobContext, tenant: string, lane: QueueLane): Promise<void> {
  const window = UPLOAD_WINDOW;
  const [queuedPrefix, waitingPrefix] = [jobsPrefix('q', lane), jobsPrefix('w', lane)];
  for (let tries = 0; tries < JOB_RACE_TRIES_MAX; tries += 1) {
    const queued = await context.rows.scan(tenant, queuedPrefix, endOf(queuedPrefix), window);
    await sendAgain(context, tenant, queued);
    const room = window - queued.length;
    if (room <= 0) return;
    const waiting = await context.rows.scan(tenant, waitingPrefix, endOf(waitingPrefix), room);
    if (waiting.length === 0) return;
    const moved = waiting.map(readJobRecord).map((record): JobRecord => ({ ...record, queued: context.now() }));
    const changes = [
      ...waiting.map(({ key }) => ({ type: 'remove', key }) as const),
      ...moved.map((record) => ({ type: 'insert', key: jobRowKey('q', record.job), value: { ...record } }) as const),
    ];
    if (await context.rows.commit(tenant, changes)) {
      await send(context, tenant, moved);
      return;
    }
  }
}

/** Resends jobs whose sending failed, often in the platform's own retry. */
async function sendAgain(context: JobContext, tenant: string, queued: readonly Row[]): Promise<void> {
  const before = context.now() - JOB_SENDING_MS;
  const unsent = queued.map(readJobRecord).filter(({ sent, queued: at }) => sent === undefined && (at ?? 0) <= before);
  if (unsent.length > 0) await send(context, tenant, unsent);
}

/** Sends jobs whose rows are queued and records it. The timer resends unrecorded ones. */
export async function send(context: JobContext, tenant: string, records: readonly JobRecord[]): Promise<void> {
  const taken = new Set(await context.jobs.send(records.map(({ job }) => job)));
  for (const record of records)
    if (taken.has(record.job)) await updateJob(context, tenant, record, { sent: context.now() });
}

/**
 * Changes the row of a queued job, if it is still one. `undefined` from `change` leaves it as it is.
 * @returns false when `change` has left it.
 */
export async function updateJob(
  context: JobContext,
  tenant: string,
  { job }: Pick<JobRecord, 'job'>,
  change: Partial<JobRecord> | ((seen: JobRecord) => Partial<JobRecord> | undefined),
): Promise<boolean> {
  const key = jobRowKey('q', job);
  for (let tries = 0; tries < JOB_RACE_TRIES_MAX; tries += 1) {
    const row: Row | undefined = await context.rows.read(tenant, key);
    if (!row) return true;
    const seen = readJobRecord(row);
    const facts = typeof change === 'function' ? change(seen) : change;
    if (!facts) return false;
    if (
      await context.rows.commit(tenant, [{ type: 'replace', key, version: row.version, value: { ...seen, ...facts } }])
    )
      return true;
  }
  return true;
}
