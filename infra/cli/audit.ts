// auricle audit …: which verb is meant, and what it needs.
import { existsSync, readFileSync } from 'node:fs';
import { HEADS } from '../../shared/audit/head.ts';
import { readPolicy } from '../../shared/audit/policy.ts';
import { verdicts } from '../../shared/audit/verify/verdict.ts';
import { type Answer, refused, wrong } from './answer.ts';
import type { Arguments } from './arguments.ts';
import { auditDoctor } from './audit-doctor.ts';
import { eraseUsage, privacyVerbs } from './audit-erase.ts';
import { exportAudit, exportUsage, verifyFolder } from './audit-export.ts';
import { type Found, findLog, listLogs, tellOthers } from './audit-find.ts';
import { RegionHeads } from './audit-heads.ts';
import { Invalid, Refused } from './audit-log.ts';
import { receiptUsage, verifyReceiptFile } from './audit-receipt.ts';
import { rebuildIndex, searchAudit, searchUsage } from './audit-search.ts';
import { receipts, show, tail } from './audit-show.ts';
import { signedAnew, verifyLog } from './audit-verify.ts';

export const auditUsage = `audit logs [--zone Z]           the logs that there are, of all years, with size and key
  audit tail [--zone Z] [--year Y] [--type T]
                                  the last entries of the log, or the last ones of a type; by default of the newest
                                  log, as with show, receipt, verify and export
  audit show INDEX [--zone Z]     one entry; or all of a request: audit show REQUEST
  audit receipt INDEX [--zone Z]  proof that the entry is in the log (.tlog-proof); of a request: audit receipt REQUEST
  ${exportUsage}
  audit verify [--zone Z] [--year Y] [--key VKEY] [--policy FILE]
                                  is the log whole? exit codes: 0 and 10 yes, with and without witnesses, 20 holes,
                                  30 not the log that was seen before, 40 not what it says
                                  what was seen is remembered in ~/.auricle/audit (AURICLE_AUDIT), a file for each log
                                  --zone heads: the log of checkpoints, and whether each region's log goes on from them
  ${receiptUsage}
  audit doctor [--zone Z] [--key VKEY]
                                  is the record being kept? exit code 0, or 1 with what is wrong
  ${searchUsage}
  ${eraseUsage}`;

/** A bundle in a folder is verified without asking anybody anything, and so is a receipt. */
export const needsNobody = ({ verb, operands, receipt }: Pick<Arguments, 'verb' | 'operands' | 'receipt'>): boolean =>
  verb === 'audit' && operands[0] === 'verify' && operands.length === (receipt === undefined ? 2 : 1);

type Headers = Record<string, string>;

interface AuditVerb {
  /** Operands behind the verb, at least and at most. */
  readonly operands: readonly [number, number];
  readonly run: (given: Arguments, headers: Headers, what: string) => Promise<Answer> | Answer;
}

/** A verb about one log. */
const ofLog =
  (look: (found: Found, what: string, given: Arguments, headers: Headers) => Promise<Answer>): AuditVerb['run'] =>
  async (given, headers, what) => {
    const found = await findLog(given, headers);
    if ('exit' in found) return found;
    try {
      const answer = await look(found, what, given, headers);
      return found.others?.length ? { note: tellOthers(found.others), ...answer } : answer;
    } catch (error) {
      const anew = error instanceof Invalid ? await signedAnew(found) : undefined;
      if (anew !== undefined) return { exit: verdicts.diverged, text: anew, value: { error: { message: anew } } };
      if (error instanceof Refused) return refused(error.response);
      throw error;
    }
  };

const verbs: ReadonlyMap<string, AuditVerb> = new Map<string, AuditVerb>([
  ['logs', { operands: [0, 0], run: listLogs }],
  ['tail', { operands: [0, 0], run: ofLog((found, _, { type }) => tail(found, type)) }],
  ['show', { operands: [1, 1], run: ofLog(show) }],
  ['receipt', { operands: [1, 1], run: ofLog(receipts) }],
  ['verify', { operands: [0, 0], run: ofLog(verify) }],
  ['export', { operands: [0, 0], run: (given, headers) => exportAudit(given, headers) }],
  ['doctor', { operands: [0, 0], run: (given, headers) => auditDoctor(given, headers) }],
  ['search', { operands: [0, 0], run: (given, headers) => searchAudit(given, headers, findLog) }],
  ['index', { operands: [0, 0], run: rebuildIndex }],
  ...[...privacyVerbs].map(([name, run]): [string, AuditVerb] => [
    name,
    // Which hold, it asks itself.
    { operands: [0, name === 'release' ? 1 : 0], run },
  ]),
]);

async function verify(found: Found, _: string, given: Arguments, headers: Headers): Promise<Answer> {
  if (given.policy !== undefined && !existsSync(given.policy)) return wrong(`there is no ${given.policy}`);
  const own = given.policy === undefined ? undefined : readPolicy(readFileSync(given.policy));
  if (own && !own.ok) return wrong(`the policy ${given.policy} cannot be read: ${own.refusal}`);
  const also = given.zone === HEADS ? new RegionHeads(given.edge, headers) : undefined;
  return verifyLog(found, { ...given, ...(also && { also }) });
}

/** Before anybody is asked for a token. */
export const problemOfVerb = ({
  operands: [name = ''],
  help,
}: Pick<Arguments, 'operands' | 'help'>): string | undefined =>
  help || verbs.has(name)
    ? undefined
    : `${name === '' ? '' : `there is no "audit ${name}"\n\n`}usage: auricle ${auditUsage}`;

export async function audit(given: Arguments, headers: Headers): Promise<Answer> {
  const [name = '', what = ''] = given.operands;
  if (name === 'verify' && given.receipt !== undefined)
    return given.operands.length === 1 ? verifyReceiptFile(given) : wrong('a folder, or --receipt FILE');
  if (needsNobody(given)) return verifyFolder(what, given);
  const verb = verbs.get(name);
  const count = given.operands.length - 1;
  if (!verb || count < verb.operands[0] || count > verb.operands[1]) return wrong(`usage: auricle ${auditUsage}`);
  return verb.run(given, headers, what);
}
