// The rows of `auricle audit …` in the table of commands.
import { erasureBases } from '../../../shared/audit/privacy.ts';
import type { Command } from '../command.ts';

const run: Command['run'] = async (given, headers) => (await import('./audit.ts')).audit(given, headers);
const place = ['zone', 'year', 'key'] as const;
const codes = `Exit codes: 0 and 10 valid, with and without witnesses; 20 holes; 30 another log than seen before;
40 invalid; 50 not an export.`;

export const auditCommands: readonly Command[] = [
  { name: 'audit logs', does: 'lists the logs of all years, with size and key', takes: ['zone'], run },
  { name: 'audit tail', does: 'shows the last entries of the log', takes: [...place, 'type'], run },
  {
    name: 'audit show',
    operands: 'INDEX|REQUEST',
    does: 'shows one entry, or all of a request, with the hidden values that the caller may see',
    takes: place,
    run,
  },
  {
    name: 'audit receipt',
    operands: 'INDEX|REQUEST',
    does: 'fetches proofs that entries are in the log (.tlog-proof)',
    takes: [...place, ['out', 'writes each entry and its receipt there, for audit verify --receipt']],
    run,
  },
  {
    name: 'audit export',
    does: 'fetches all entries of the tenant as a verifiable bundle; resumes after a break',
    takes: ['out', 'purpose', 'zone', 'year', 'from', 'to', ['format', 'derived tables: csv,fhir,…'], 'profile'],
    more: `The entries of the newest log go up to the export itself, those of an ended year to its end. Disclosures and
derived files end at --to.`,
    run,
  },
  {
    name: 'audit verify',
    operands: '[DIR]',
    does: 'verifies a log, or offline a bundle in DIR or one entry with --receipt',
    takes: [...place, 'policy', 'head', 'after', 'receipt', 'entry'],
    more: `${codes}
The last checkpoint of each log is stored in ~/.auricle/audit (AURICLE_AUDIT).`,
    local: ({ operands, receipt }) => operands.length === (receipt === undefined ? 2 : 1),
    run,
  },
  {
    name: 'audit doctor',
    does: 'checks the health of the record: fresh, signed, published, witnessed',
    takes: ['zone', 'key'],
    run,
  },
  {
    name: 'audit gaps',
    does: 'lists gaps of the log, with those that were accepted (scope operate)',
    takes: ['zone'],
    run,
  },
  {
    name: 'audit accept-gap',
    operands: 'YEAR-INDEX',
    does: 'accepts a gap, with a reason on record: verify and doctor show it as accepted (scope operate)',
    takes: ['reason', 'zone'],
    run,
  },
  {
    name: 'audit search',
    does: 'finds entries of the tenant',
    takes: [
      ...(['request', 'subject', 'commitment'] as const),
      ['model', 'entries about this model'],
      ...(['day', 'type', 'zone'] as const),
      ['after', 'continues an earlier answer, in one --zone', 'A'],
    ],
    run,
  },
  {
    name: 'audit erase',
    does: 'erases the hidden values of a subject',
    takes: ['subject', 'commitment', ['basis', `${erasureBases.join(', ')}, or other:NAME; the log shows it`], 'zone'],
    run,
  },
  { name: 'audit erasures', does: 'lists erasures that wait', takes: ['zone'], run },
  {
    name: 'audit hold',
    does: 'holds a subject, or the whole tenant, against erasure',
    takes: ['reason', 'subject', 'commitment', 'basis', 'id', 'zone'],
    run,
  },
  { name: 'audit holds', does: 'lists holds', takes: ['zone'], run },
  {
    name: 'audit release',
    operands: 'ID',
    does: 'ends a hold; an erasure that waited for it runs within five minutes',
    takes: ['reason', 'zone'],
    run,
  },
];
