// Advances an export one step at a time. A step does repeatable work, then swaps the row: a crash or a lost
// race changes nothing.
import { reasonOf } from '../context/log-context.ts';
import { anchorExport } from './anchor-export.ts';
import { collectPart } from './collect-part.ts';
import type { ExportContext } from './export-context.ts';
import { removeFiles } from './export-files.ts';
import { dueOf, EXPORT_STORED_MS, type ExportRow, findExport, listDue, replaceExport } from './export-row.ts';
import { findBegin } from './find-begin.ts';
import { findLinks } from './find-links.ts';
import { sealExport } from './seal-export.ts';

/** First pause after a failed step of an export; each next one doubles. */
const EXPORT_PAUSE_MS = 1_000;
/** Work on exports within one tick of the timer; the next one continues. */
export const EXPORT_STEP_MS = 20_000;
/** Failures in a row of one step, with growing pauses, before the export fails. */
export const EXPORT_TRIES_MAX = 8;

/** `undefined`: nothing is known of it any more. */
type Step = (context: ExportContext, row: ExportRow) => Promise<ExportRow | undefined>;

const steps: Readonly<Record<ExportRow['state'], Step>> = {
  /** The process crashed before the outcome of its report was known. */
  asked: async ({ now }, row) => ({ ...row, state: 'failed', reason: 'not_recorded', ended: now() }),
  anchoring: anchorExport,
  collecting: (context, row) => {
    if (row.back !== undefined) return findBegin(context, row, row.back);
    if (row.covered !== row.size) return collectPart(context, row);
    return row.linked ? sealExport(context, row) : findLinks(context, row);
  },
  done: expire,
  failed: forget,
  expired: forget,
};

/** A step that lost its race may have written files after the others were removed. */
async function forget({ store }: ExportContext, row: ExportRow): Promise<undefined> {
  await removeFiles(store, row);
}

async function expire({ store, now }: ExportContext, row: ExportRow): Promise<ExportRow> {
  const until = (row.ended ?? row.created) + EXPORT_STORED_MS;
  if (now() < until) return { ...row, due: until };
  await removeFiles(store, row);
  return { ...row, state: 'expired' };
}

/** After a failure: later each time, and not for ever. */
async function failed(context: ExportContext, row: ExportRow, error: unknown): Promise<ExportRow> {
  context.log({ what: 'failed', zone: row.zone, detail: `export ${row.id}: ${reasonOf(error)}` });
  const tries = row.tries + 1;
  if (tries < EXPORT_TRIES_MAX) return { ...row, tries, due: context.now() + EXPORT_PAUSE_MS * 2 ** tries };
  await removeFiles(context.store, row).catch(() => {});
  return { ...row, tries, state: 'failed', reason: 'step_failed', ended: context.now() };
}

/** Performs one step; returns `false` when none is due. */
export async function advanceExport(
  context: ExportContext,
  zone: string,
  tenant: string,
  id: string,
): Promise<boolean> {
  const stored = await findExport(context.rows, zone, tenant, id);
  if (!stored || dueOf(stored.row) > context.now()) return false;
  let next: ExportRow | undefined;
  try {
    const made = await steps[stored.row.state](context, stored.row);
    next = made && { ...made, tries: 0 };
  } catch (error) {
    next = await failed(context, stored.row, error);
  }
  return (await replaceExport(context.rows, next, stored)) && next !== undefined && dueOf(next) <= context.now();
}

/** All that is due in all zones, a step of each in turns, as long as one tick lasts. */
export async function advanceExports(context: ExportContext): Promise<void> {
  const until = context.now() + EXPORT_STEP_MS;
  const listed = context.zones.map(async (zone) => {
    const due = await listDue(context.rows, zone, context.now());
    return due.map((one) => ({ ...one, zone }));
  });
  for (let more = inTurns(await Promise.all(listed)); more.length > 0 && context.now() < until; ) {
    const going: typeof more = [];
    for (const one of more) {
      // The next tick begins with the step that is due longest.
      if (context.now() >= until) return;
      if (await advanceExport(context, one.zone, one.tenant, one.id)) going.push(one);
    }
    more = going;
  }
}

/** The first of each, then the second of each: no zone waits for all of another. */
function inTurns<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}
