// A witness does not go on from what it has: is it only ahead of this process, or was the log another one before?
import type { Judge } from '../../../shared/audit/judge.ts';
import { hashRange } from '../../../shared/audit/proof.ts';
import { equalBytes } from '../../../shared/audit/tree.ts';
import { newestState } from '../intake/acknowledge.ts';
import type { LogStore } from '../log/log-store.ts';
import type { Signed } from './ask-witness.ts';

export interface Doubt {
  /** The size that it said it has. */
  readonly told?: number;
  /** The checkpoint that it shows. */
  readonly note?: Uint8Array;
}

/**
 * Why the log is not what it was, or `undefined` when the answer proves nothing. What is committed is read after the
 * answer: nobody can have seen more than that of this log, however far behind `signed` is.
 */
export async function judgeDoubt(
  store: LogStore,
  zone: string,
  origin: string,
  signed: Signed,
  { told = 0, note }: Doubt,
  judge: Judge,
): Promise<string | undefined> {
  const committed = await committedSize(store, zone, origin);
  if (committed === undefined) return undefined;
  // Only what this log signed under its own name counts, whoever shows it.
  const seen = note && (await judge(note))?.checkpoint;
  const known = seen?.origin === origin ? seen : undefined;
  if (known && known.size > committed)
    return `shows a signed checkpoint of ${known.size} entries, the log has ${committed}`;
  if (known && known.size <= signed.size) {
    const root = await hashRange(0, known.size, signed.read);
    if (!equalBytes(root, known.root)) return `shows a signed checkpoint of ${known.size} entries with another root`;
  }
  return told > committed ? `says that it has seen ${told} entries, the log has ${committed}` : undefined;
}

/** `undefined` of a log that is long over. */
async function committedSize(store: LogStore, zone: string, origin: string): Promise<number | undefined> {
  const state = await newestState(store, zone);
  if (state?.origin === origin) return state.size;
  return state?.previous?.origin === origin ? state.previous.size : undefined;
}
