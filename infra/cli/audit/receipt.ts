// auricle audit verify --receipt FILE: verifies an entry and its receipt offline.
import { existsSync, readFileSync } from 'node:fs';
import { readCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { latestAt, openJudge } from '../../../shared/audit/judge.ts';
import { readLeaf } from '../../../shared/audit/leaf.ts';
import { splitNote } from '../../../shared/audit/note.ts';
import { readPolicy } from '../../../shared/audit/policy.ts';
import { readReceipt, verifyReceipt } from '../../../shared/audit/receipt.ts';
import { type Verdict, verdicts } from '../../../shared/audit/verify/verdict.ts';
import { type Answer, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';

type Given = Partial<Pick<Arguments, 'receipt' | 'policy' | 'entry'>>;

export async function verifyReceiptFile({ receipt = '', policy, entry }: Given, now = Date.now()): Promise<Answer> {
  if (policy === undefined) return wrong('missing --policy FILE: the key of the log, from a source you trust');
  const beside = receipt.endsWith('.tlog-proof') ? receipt.replace(/\.tlog-proof$/, '.json') : undefined;
  const file = entry ?? beside;
  if (file === undefined) return wrong('missing --entry FILE: the entry, byte for byte as in the log');
  for (const name of [receipt, policy, file]) if (!existsSync(name)) return wrong(`there is no ${name}`);
  const believed = readPolicy(readFileSync(policy));
  if (!believed.ok) return wrong(`the policy ${policy} cannot be read: ${believed.refusal}`);
  const [read, bytes] = [readReceipt(readFileSync(receipt)), readFileSync(file)];
  const parts = read && splitNote(new TextEncoder().encode(read.checkpoint));
  const checkpoint = parts && readCheckpoint(parts.text);
  if (!read || !checkpoint) return answerOf('invalid', `${receipt} is not a receipt`);
  const { origin, size } = checkpoint;
  const names = believed.value.logs.map(({ key }) => key.name);
  if (!names.includes(origin))
    return wrong(`the policy ${policy} has no key of ${origin}, which made this receipt; it names ${names.join(', ')}`);
  const judge = await openJudge(believed.value);
  if (!(await judge(new TextEncoder().encode(read.checkpoint))))
    return answerOf('invalid', `the checkpoint in ${receipt} is not signed by ${origin}`);
  const judged = await verifyReceipt(read, bytes, judge, latestAt(now));
  if (!judged) return answerOf('invalid', `${receipt} does not show that ${file} is in ${origin}`);
  const seen = judged.witnesses.map(({ name }) => name);
  const witnessed = judged.quorum && seen.length > 0;
  const text = `entry ${read.index} of ${origin}, as it is in ${file}, is in the log of ${size} entries, witnessed by ${seen.join(', ') || 'no witness'}`;
  const more = { origin, index: read.index, size, witnesses: judged.witnesses, leaf: readLeaf(bytes) };
  return answerOf(witnessed ? 'witnessed' : 'unwitnessed', text, more);
}

const answerOf = (verdict: Verdict, detail: string, more: object = {}): Answer => ({
  exit: verdicts[verdict],
  text: `${verdict}: ${detail}`,
  value: { verdict, detail, ...more },
});
