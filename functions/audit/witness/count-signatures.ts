// Ranks a checkpoint by its cosignatures, under a policy.
import { type Judged, latestAt, openJudge } from '../../../shared/audit/judge.ts';
import { formatSignature, isOfKey, splitNote } from '../../../shared/audit/note.ts';
import { openNoteKey } from '../../../shared/audit/note-key.ts';
import type { Policy } from '../../../shared/audit/policy.ts';

export type JudgeNow = (note: Uint8Array) => Promise<Judged | undefined>;

/** Number of counted cosignatures, negative for a note that the policy does not accept. */
export async function signatureCount(note: Uint8Array, judge: JudgeNow): Promise<number> {
  const judged = await judge(note);
  return judged ? judged.logKeys.length + judged.witnesses.length : -1;
}

/** Judges at the time that it is then. */
export async function openJudgeNow(policy: Policy, now: () => number): Promise<JudgeNow> {
  const judge = await openJudge(policy);
  return (note) => judge(note, latestAt(now()));
}

/**
 * Returns the checkpoint with its cosignatures, without those dated in the future, which would precede the
 * same witness's next one. `undefined` when the policy does not accept it.
 */
export async function countedOf(
  note: Uint8Array,
  { witnesses }: Policy,
  judge: JudgeNow,
): Promise<Uint8Array | undefined> {
  const [judged, parts] = [await judge(note), splitNote(note)];
  if (!judged || !parts) return undefined;
  const counted = new Set(judged.witnesses.map(({ name }) => name));
  const early = witnesses.filter(({ name }) => !counted.has(name));
  const keys = await Promise.all(early.map(({ key }) => openNoteKey(key)));
  const good = parts.signatures.filter((one) => !keys.some((key) => isOfKey(one, key)));
  return new TextEncoder().encode(`${parts.text}\n${good.map(formatSignature).join('')}`);
}
