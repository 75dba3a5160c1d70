// Evaluates a checkpoint under a policy: its log's signature and its witnesses.
import { type Checkpoint, readCheckpoint } from './checkpoint.ts';
import { timeOfCosignature } from './cosignature.ts';
import { WITNESS_SKEW_MS } from './limits.ts';
import { isOfKey, openNote, type Verifier } from './note.ts';
import { type NoteKey, openNoteKey } from './note-key.ts';
import { isQuorum, type Policy } from './policy.ts';

export interface Judged {
  readonly checkpoint: Checkpoint;
  /** The log's keys that signed it, at least one. */
  readonly logKeys: readonly NoteKey[];
  /** Witnesses by name in the policy, and their times in epoch seconds. */
  readonly witnesses: readonly { readonly name: string; readonly time: number }[];
  /** The policy's quorum is met. A policy without witnesses never has one. */
  readonly quorum: boolean;
}

/**
 * Evaluates a note; `undefined` when it is no checkpoint, when no log of the policy signed it under its own
 * name, or when a policy key's signature is wrong. Ignores cosignatures later than `latest`, epoch seconds.
 */
export type Judge = (note: Uint8Array, latest?: number) => Promise<Judged | undefined>;

/** Returns the latest acceptable time of a signature at `now`, epoch ms. */
export const latestAt = (now: number): number => (now + WITNESS_SKEW_MS) / 1_000;

/** Throws on an invalid key in the policy. */
export async function openJudge(policy: Policy): Promise<Judge> {
  const logs = await Promise.all(policy.logs.map(async (log) => ({ ...log, verifier: await openNoteKey(log.key) })));
  const witnesses = await Promise.all(
    policy.witnesses.map(async (witness) => ({ ...witness, verifier: await openNoteKey(witness.key) })),
  );
  const verifiers: Verifier[] = [...logs, ...witnesses].map(({ verifier }) => verifier);
  return async (note, latest = Number.POSITIVE_INFINITY) => {
    const opened = await openNote(note, verifiers);
    const checkpoint = opened && readCheckpoint(opened.text);
    if (!checkpoint) return undefined;
    const signatureOf = (verifier: Verifier) => opened.good.find((one) => isOfKey(one, verifier));
    const logKeys = logs.filter(({ key, verifier }) => key.name === checkpoint.origin && signatureOf(verifier));
    if (logKeys.length === 0) return undefined;
    const seen = witnesses.flatMap(({ name, verifier }) => {
      const found = signatureOf(verifier);
      const time = found && timeOfCosignature(found.signature);
      return time === undefined || time > latest ? [] : [{ name, time }];
    });
    const quorum = isQuorum(policy, new Set(seen.map(({ name }) => name)));
    return { checkpoint, logKeys: logKeys.map(({ key }) => key), witnesses: seen, quorum };
  };
}
