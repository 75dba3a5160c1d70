// Decides what the sweep does about a job in the queue. Pure.
import { limits } from '../../shared/limits.ts';
import type { Messages } from '../store/jobs.ts';
import { type JobRecord, MINUTE } from './record.ts';

/**
 * `send`: it was never sent. `offer`: pools without accelerators have not taken it, the others get it. `suspect`: its
 * agent is silent; `resend` follows unless the agent reports. `give-up`: its upload ends.
 */
export type Redrive = 'none' | 'send' | 'offer' | 'suspect' | 'resend' | 'give-up';

const UNTAKEN_MS = limits.uploadUntakenHours.value * 60 * MINUTE;
/** Rounds with the shortest silence: what three outages in a row have lost is found as soon as what one has. */
const QUICK_ROUNDS = 3;

/** Returns how long a job of so many rounds may be silent. */
const silentMs = (rounds: number): number =>
  Math.min(limits.jobSilentMaxMs.value, limits.jobSilentMs.value * 3 ** Math.max(0, rounds + 1 - QUICK_ROUNDS));

export function decideRedrive(record: JobRecord, now: number): Redrive {
  const { job, since, queued = since, sent, opened, suspected, rounds = 0 } = record;
  if (opened === undefined) {
    if (queued + UNTAKEN_MS <= now) return 'give-up';
    if (sent === undefined) return queued + limits.jobSendingMs.value <= now ? 'send' : 'none';
    if (job.light && sent + limits.projectLightMs.value <= now) return 'offer';
    return sent + limits.uploadResendMs.value <= now ? 'resend' : 'none';
  }
  if (opened + silentMs(rounds) > now) return 'none';
  // While functions or the table are away all agents are silent: only one that stays so afterwards has lost its job.
  if (suspected === undefined || suspected < opened) return 'suspect';
  if (suspected + limits.jobSuspectMs.value > now) return 'none';
  return rounds + 1 < limits.uploadJobTries.value ? 'resend' : 'give-up';
}

/** Returns whether an agent reports that it works on the job. */
export const isReported = ({ opened }: JobRecord, now: number): boolean =>
  opened !== undefined && now < opened + limits.jobSilentMs.value;

/** Returns whether the queue must hold a message of the job that no agent has opened. */
export const isUnopened = ({ sent, opened }: JobRecord, now: number): boolean =>
  opened === undefined && sent !== undefined && sent + limits.uploadQueueLostMs.value <= now;

/**
 * Returns whether a queue has lost messages: `unopened` jobs lie in it as far as the table knows, among its visible
 * messages or among those that agents have received and not opened. Jobs that wait their turn are never sent twice.
 */
export const hasLost = ({ waiting, taken }: Messages, unopened: number, opened: number): boolean =>
  unopened > waiting + Math.max(0, taken - opened);
