// Reads the witnessed checkpoint of a log under a policy: the auditor's own, or the one that the log serves.
import { readFileSync } from 'node:fs';
import { type Checkpoint, openCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { latestAt, openJudge } from '../../../shared/audit/judge.ts';
import type { Verifier } from '../../../shared/audit/note.ts';
import { openNoteKey } from '../../../shared/audit/note-key.ts';
import { type Policy, readPolicy } from '../../../shared/audit/policy.ts';
import { equalBytes } from '../../../shared/audit/tree.ts';
import { fetchIfThere, Invalid, type LogReader } from './log.ts';

export interface Witnessed {
  readonly checkpoint: Checkpoint;
  /** Names of the witnesses in the policy. */
  readonly names: readonly string[];
  /** Time of the earliest signature in the quorum, ms since 1970. */
  readonly at: number;
}

async function isNamed({ logs }: Policy, { name, keyId }: Verifier): Promise<boolean> {
  const named = await Promise.all(logs.filter(({ key }) => key.name === name).map(({ key }) => openNoteKey(key)));
  return named.some((one) => equalBytes(one.keyId, keyId));
}

/**
 * Returns the newest checkpoint with a witness quorum, or `undefined` when there is none. Throws `Invalid`
 * when the served checkpoint belongs to another log or to one that the policy does not name.
 */
export async function findWitnessed(
  reader: LogReader,
  policyFile: string | undefined,
  now: number,
): Promise<Witnessed | undefined> {
  const own = policyFile === undefined ? undefined : new Uint8Array(readFileSync(policyFile));
  const policy = own ?? (await fetchIfThere(reader, 'policy'));
  if (!policy) return undefined;
  const read = readPolicy(policy);
  if (!read.ok) throw new Invalid(`the policy cannot be read: ${read.refusal}`);
  // Applies to a log without witnesses too: an auditor's policy excludes other keys.
  if (own && !(await isNamed(read.value, reader.verifier)))
    throw new Invalid(`the policy does not name ${reader.verifier.name} with the key that signs it`);
  const note = await fetchIfThere(reader, 'witnessed');
  if (!note) return undefined;
  const ours = await openCheckpoint(note, reader.verifier);
  const judge = await openJudge(read.value);
  const judged = await judge(note, latestAt(now));
  if (!ours || !judged) throw new Invalid('the witnessed checkpoint is not signed by a log that the policy names');
  if (!judged.quorum || judged.witnesses.length === 0) return undefined;
  const at = Math.min(...judged.witnesses.map(({ time }) => time)) * 1_000;
  return { checkpoint: ours, names: judged.witnesses.map(({ name }) => name), at };
}
