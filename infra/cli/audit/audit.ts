// auricle audit …: dispatches to its commands.
import { existsSync, readFileSync } from 'node:fs';
import { readPolicy } from '../../../shared/audit/policy.ts';
import { verdicts } from '../../../shared/audit/verify/verdict.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { auditDoctor } from './doctor.ts';
import { privacyVerbs } from './erase.ts';
import { exportAudit, verifyFolder } from './export.ts';
import { type FoundLog, findLog, listLogs, nameOtherZones } from './find.ts';
import { acceptGap, listGaps } from './gaps.ts';
import { Invalid, Refused } from './log.ts';
import { verifyReceiptFile } from './receipt.ts';
import { searchAudit } from './search.ts';
import { receipts, show, tail } from './show.ts';
import { signedAnew, verifyLog } from './verify.ts';

type Headers = Record<string, string>;

type Run = (given: Arguments, headers: Headers, what: string) => Promise<Answer> | Answer;

/** Wraps a command on one log. */
const ofLog =
  (look: (found: FoundLog, what: string, given: Arguments, headers: Headers) => Promise<Answer>): Run =>
  async (given, headers, what) => {
    const found = await findLog(given, headers);
    if ('exit' in found) return found;
    try {
      const answer = await look(found, what, given, headers);
      return found.others?.length ? { note: nameOtherZones(found.others), ...answer } : answer;
    } catch (error) {
      const anew = error instanceof Invalid ? await signedAnew(found) : undefined;
      if (anew !== undefined) return { exit: verdicts.diverged, text: anew, value: { error: { message: anew } } };
      if (error instanceof Refused) return refused(error.response);
      throw error;
    }
  };

const verbs: ReadonlyMap<string, Run> = new Map<string, Run>([
  ['logs', listLogs],
  ['tail', ofLog((found, _, { type }) => tail(found, type))],
  ['show', ofLog(show)],
  ['receipt', ofLog(receipts)],
  ['verify', ofLog(verify)],
  ['export', (given, headers) => exportAudit(given, headers)],
  ['doctor', (given, headers) => auditDoctor(given, headers)],
  ['search', (given, headers) => searchAudit(given, headers)],
  ['gaps', listGaps],
  ['accept-gap', acceptGap],
  ...privacyVerbs,
]);

async function verify(found: FoundLog, _: string, given: Arguments): Promise<Answer> {
  if (given.policy !== undefined && !existsSync(given.policy)) return wrong(`there is no ${given.policy}`);
  const own = given.policy === undefined ? undefined : readPolicy(readFileSync(given.policy));
  if (own && !own.ok) return wrong(`the policy ${given.policy} cannot be read: ${own.refusal}`);
  return verifyLog(found, given);
}

export async function audit(given: Arguments, headers: Headers): Promise<Answer> {
  const [name = '', what = ''] = given.operands;
  if (name === 'verify' && given.receipt !== undefined)
    return what === '' ? verifyReceiptFile(given) : wrong('a folder, or --receipt FILE');
  if (name === 'verify' && what !== '') return verifyFolder(what, given);
  const verb = verbs.get(name);
  if (!verb) throw new Error(`unknown command: audit ${name}`);
  return verb(given, headers, what);
}
