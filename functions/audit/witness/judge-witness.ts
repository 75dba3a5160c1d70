// Evaluates a witness that does not extend the log from the size it has: either the witness is ahead of this process, or
// the log has diverged. Only a checkpoint that the log has signed is proof: a claim alone must not stop a log.
import type { Judge } from '../../../shared/audit/judge.ts';
import { hashRange } from '../../../shared/audit/proof.ts';
import { equalBytes } from '../../../shared/audit/tree.ts';
import { newestState } from '../log/acknowledge.ts';
import type { LogStore } from '../log/log-store.ts';
import type { Signed } from './request-cosignature.ts';

export interface Doubt {
  /** Size that the witness states. */
  readonly claimed?: number;
  /** Checkpoint that the witness serves. */
  readonly note?: Uint8Array;
}

/** A log with the checkpoint that its witnesses are to sign. */
export interface WitnessedLog {
  readonly zone: string;
  readonly origin: string;
  readonly signed: Signed;
  readonly judge: Judge;
}

export interface Finding {
  /** The log signed it under its own name, so the witness cannot have invented it. */
  readonly proven: boolean;
  readonly why: string;
}

/**
 * Returns the reason that a log has diverged, or `undefined`. The committed size is read after the answer:
 * no witness can have seen more of this log, however old `signed` is.
 */
export async function evaluateDoubt(
  store: LogStore,
  { zone, origin, signed, judge }: WitnessedLog,
  { claimed = 0, note }: Doubt,
): Promise<Finding | undefined> {
  const committed = await committedSize(store, zone, origin);
  if (committed === undefined) return undefined;
  const proven = (why: string): Finding => ({ proven: true, why });
  const seen = note && (await judge(note))?.checkpoint;
  const known = seen?.origin === origin ? seen : undefined;
  if (known && known.size > committed)
    return proven(`shows a signed checkpoint of ${known.size} entries, the log has ${committed}`);
  if (known && known.size <= signed.size) {
    const root = await hashRange(0, known.size, signed.read);
    if (!equalBytes(root, known.root))
      return proven(`shows a signed checkpoint of ${known.size} entries with another root`);
  }
  const why = `says that it has seen ${claimed} entries and shows none of them signed, the log has ${committed}`;
  return claimed > committed ? { proven: false, why } : undefined;
}

/** `undefined` of a log that is long over. */
async function committedSize(store: LogStore, zone: string, origin: string): Promise<number | undefined> {
  const state = await newestState(store, zone);
  if (state?.origin === origin) return state.size;
  return state?.previous?.origin === origin ? state.previous.size : undefined;
}
