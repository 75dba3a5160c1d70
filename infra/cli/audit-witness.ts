// What witnesses have seen of a log, judged by a policy: the auditor's own, or else the one that the log serves.
import { readFileSync } from 'node:fs';
import { type Checkpoint, openCheckpoint } from '../../shared/audit/checkpoint.ts';
import { openJudge } from '../../shared/audit/judge.ts';
import { readPolicy } from '../../shared/audit/policy.ts';
import { limits } from '../../shared/limits.ts';
import { fetchIfThere, Invalid, type LogReader } from './audit-log.ts';

export interface Witnessed {
  readonly checkpoint: Checkpoint;
  /** Who, by the names of the policy. */
  readonly names: readonly string[];
  /** When the first of the latest signatures that make up the quorum was made, in milliseconds since 1970. */
  readonly at: number;
}

/**
 * The newest checkpoint that enough witnesses have signed; `undefined` where there is none. Throws `Invalid` when what
 * is served for one is not of this log, or not of a log that the policy names.
 */
export async function findWitnessed(
  reader: LogReader,
  policyFile: string | undefined,
  now: number,
): Promise<Witnessed | undefined> {
  const own = policyFile === undefined ? undefined : new Uint8Array(readFileSync(policyFile));
  const policy = own ?? (await fetchIfThere(reader, 'policy'));
  const note = policy && (await fetchIfThere(reader, 'witnessed'));
  if (!policy || !note) return undefined;
  const read = readPolicy(policy);
  if (!read.ok) throw new Invalid(`the policy cannot be read: ${read.refusal}`);
  const ours = await openCheckpoint(note, reader.verifier);
  const judge = await openJudge(read.value);
  const judged = await judge(note, (now + limits.auditWitnessSkewMs.value) / 1_000);
  if (!ours || !judged) throw new Invalid('the witnessed checkpoint is not signed by a log that the policy names');
  if (!judged.quorum || judged.witnesses.length === 0) return undefined;
  const at = Math.min(...judged.witnesses.map(({ time }) => time)) * 1_000;
  return { checkpoint: ours, names: judged.witnesses.map(({ name }) => name), at };
}
