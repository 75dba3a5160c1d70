// Decides what the sweep does about a job in the queue. Pure.
import type { Messages } from '../store/jobs.ts';
import { JOB_SENDING_MS } from './limits.ts';
import { type JobRecord, MINUTE } from './record.ts';

/** Time without a CPU pool after which a light job goes to the queue of all pools of the zone. */
export const PROJECT_LIGHT_MS = 2 * 60_000;
/**
 * Rounds of a job that agents take and leave, each of JOB_RECEIVES_MAX; with JOB_SILENT_MAX_MS they last most
 * of an hour.
 */
export const JOB_ROUNDS_MAX = 6;
/**
 * Silence after which a taken job may be lost: agents report each 10 s, and retry a failed one within 45 s.
 */
export const JOB_SILENT_MS = 60_000;
/**
 * Longest such silence after many rounds, tripled each time: a model that fails for half an hour ends no
 * upload.
 */
export const JOB_SILENT_MAX_MS = 15 * 60_000;
/** Delay before a silent job is sent again: a live agent reports within it once functions are back. */
export const JOB_SUSPECT_MS = 15_000;
/** Age at which a sent job is checked against its queue's count: the counts of SQS lag by up to a minute. */
const QUEUE_LAG_MS = 60_000;
/** Age at which an untaken job is sent again whatever the queue counts; a duplicate is harmless. */
export const JOB_RESEND_MS = 3_600_000;
/**
 * Hours after which an untaken job is given up: no agent serves its model. Its upload ends and can be run
 * again.
 */
export const JOB_UNTAKEN_HOURS = 24;

/**
 * `send`: it was never sent. `offer`: pools without accelerators have not taken it, the others get it. `suspect`: its
 * agent is silent; `resend` follows unless the agent reports. `give-up`: its upload ends.
 */
export type Redrive = 'none' | 'send' | 'offer' | 'suspect' | 'resend' | 'give-up';

const UNTAKEN_MS = JOB_UNTAKEN_HOURS * 60 * MINUTE;
/** Rounds with the shortest silence: what three outages in a row have lost is found as soon as what one has. */
const QUICK_ROUNDS = 3;

/** Returns how long a job of so many rounds may be silent. */
const silentMs = (rounds: number): number =>
  Math.min(JOB_SILENT_MAX_MS, JOB_SILENT_MS * 3 ** Math.max(0, rounds + 1 - QUICK_ROUNDS));

export function decideRedrive(record: JobRecord, now: number): Redrive {
  const { job, since, queued = since, sent, opened, suspected, rounds = 0 } = record;
  if (opened === undefined) {
    if (queued + UNTAKEN_MS <= now) return 'give-up';
    if (sent === undefined) return queued + JOB_SENDING_MS <= now ? 'send' : 'none';
    if (job.light && sent + PROJECT_LIGHT_MS <= now) return 'offer';
    return sent + JOB_RESEND_MS <= now ? 'resend' : 'none';
  }
  if (opened + silentMs(rounds) > now) return 'none';
  // While functions or the table are away all agents are silent: only one that stays so afterwards has lost its job.
  if (suspected === undefined || suspected < opened) return 'suspect';
  if (suspected + JOB_SUSPECT_MS > now) return 'none';
  return rounds + 1 < JOB_ROUNDS_MAX ? 'resend' : 'give-up';
}

/** Returns whether an agent reports that it works on the job. */
export const isReported = ({ opened }: JobRecord, now: number): boolean =>
  opened !== undefined && now < opened + JOB_SILENT_MS;

/** Returns whether the queue must hold a message of the job that no agent has opened. */
export const isUnopened = ({ sent, opened }: JobRecord, now: number): boolean =>
  opened === undefined && sent !== undefined && sent + QUEUE_LAG_MS <= now;

/**
 * Returns whether a queue has lost messages: `unopened` jobs lie in it as far as the table knows, among its visible
 * messages or among those that agents have received and not opened. Jobs that wait their turn are never sent twice.
 */
export const hasLost = ({ waiting, taken }: Messages, unopened: number, opened: number): boolean =>
  unopened > waiting + Math.max(0, taken - opened);
