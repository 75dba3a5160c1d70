// auricle audit …: which verb is meant, and what it needs.
import { existsSync } from 'node:fs';
import { HEADS } from '../../shared/audit/head.ts';
import { type Answer, refused, wrong } from './answer.ts';
import type { Arguments } from './arguments.ts';
import { auditDoctor } from './audit-doctor.ts';
import { eraseUsage, privacyVerbs } from './audit-erase.ts';
import { exportAudit, exportUsage, verifyFolder } from './audit-export.ts';
import { findLog, listLogs } from './audit-find.ts';
import { RegionHeads } from './audit-heads.ts';
import { Refused } from './audit-log.ts';
import { receiptUsage, verifyReceiptFile } from './audit-receipt.ts';
import { rebuildIndex, searchAudit, searchUsage } from './audit-search.ts';
import { receipts, show, tail } from './audit-show.ts';
import { verifyLog } from './audit-verify.ts';

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
                                  --zone heads: the log of checkpoints, and whether each region's log goes on from them
  ${receiptUsage}
  audit doctor [--zone Z] [--key VKEY]
                                  is the record being kept? exit code 0, or 1 with what is wrong
  ${searchUsage}
  ${eraseUsage}`;

/** A bundle in a folder is verified without asking anybody anything, and so is a receipt. */
export const needsNobody = ({ verb, operands, receipt }: Pick<Arguments, 'verb' | 'operands' | 'receipt'>): boolean =>
  verb === 'audit' && operands[0] === 'verify' && operands.length === (receipt === undefined ? 2 : 1);

export async function audit(given: Arguments, headers: Record<string, string>): Promise<Answer> {
  const [verb, what, ...rest] = given.operands;
  if (verb === 'verify' && given.receipt !== undefined)
    return what === undefined ? verifyReceiptFile(given) : wrong('a folder, or --receipt FILE');
  if (needsNobody(given)) return verifyFolder(what as string, given);
  const privacy = privacyVerbs.get(verb ?? '');
  if (privacy && rest.length === 0 && (what === undefined || verb === 'release')) return privacy(given, headers);
  if (verb === 'search' && what === undefined) return searchAudit(given, headers, findLog);
  if (verb === 'index' && what === undefined) return rebuildIndex(given, headers);
  if (verb === 'logs' && what === undefined) return listLogs(given, headers);
  const known =
    verb === 'tail' || verb === 'verify' || verb === 'export' || verb === 'doctor'
      ? what === undefined
      : (verb === 'show' || verb === 'receipt') && what !== undefined;
  if (!known || rest.length > 0) return wrong(`usage: auricle ${auditUsage}`);
  if (verb === 'export') return exportAudit(given, headers);
  if (verb === 'doctor') return auditDoctor(given, headers);
  const found = await findLog(given, headers);
  if ('exit' in found) return found;
  try {
    if (verb === 'verify' && given.policy !== undefined && !existsSync(given.policy))
      return wrong(`there is no ${given.policy}`);
    if (verb === 'verify') {
      const also = given.zone === HEADS ? new RegionHeads(given.edge, headers) : undefined;
      return await verifyLog(found, { ...given, ...(also && { also }) });
    }
    if (verb === 'receipt') return await receipts(found, what as string);
    return verb === 'tail' ? await tail(found, given.type) : await show(found, what as string);
  } catch (error) {
    if (error instanceof Refused) return refused(error.response);
    throw error;
  }
}
