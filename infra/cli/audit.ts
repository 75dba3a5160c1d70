// auricle audit tail|show|receipt|export|verify

import { existsSync } from 'node:fs';
import type { z } from 'zod';
import { openCheckpoint } from '../../shared/audit/checkpoint.ts';
import { HEADS } from '../../shared/audit/head.ts';
import type { Leaf } from '../../shared/audit/leaf.ts';
import { formatVerifierKey, readVerifierKey } from '../../shared/audit/note.ts';
import { readReceipt } from '../../shared/audit/receipt.ts';
import { TILE_WIDTH } from '../../shared/audit/tile.ts';
import { type Answer, refused, wrong } from './answer.ts';
import type { Arguments } from './arguments.ts';
import { auditDoctor } from './audit-doctor.ts';
import { eraseUsage, privacyVerbs } from './audit-erase.ts';
import { exportAudit, exportUsage, verifyFolder } from './audit-export.ts';
import { RegionHeads } from './audit-heads.ts';
import {
  fetchCheckpoint,
  fetchEntries,
  Invalid,
  type LogReader,
  leafOf,
  listedLogs,
  openReader,
  Refused,
} from './audit-log.ts';
import { recall } from './audit-memory.ts';
import { rebuildIndex, searchAudit, searchUsage } from './audit-search.ts';
import { verifyLog } from './audit-verify.ts';

export const auditUsage = `audit tail [--zone Z] [--year Y]  the last entries of the log, by default of this year; so do show, receipt and verify
  audit show INDEX [--zone Z]     one entry; or all of a request: audit show REQUEST
  audit receipt INDEX [--zone Z]  proof that the entry is in the log (.tlog-proof); of a request: audit receipt REQUEST
  ${exportUsage}
  audit verify [--zone Z] [--year Y] [--key VKEY] [--policy FILE]
                                  is the log whole? exit codes: 0 and 10 yes, with and without witnesses, 20 holes,
                                  30 not the log that was seen before, 40 not what it says
                                  --zone heads: the log of checkpoints, and whether each region's log goes on from them
  audit doctor [--zone Z] [--key VKEY]
                                  is the record being kept? exit code 0, or 1 with what is wrong
  ${searchUsage}
  ${eraseUsage}`;

/** Entries that `tail` shows. */
const TAIL = 20;

export interface Found {
  readonly base: string;
  readonly vkey: string;
  readonly reader: LogReader;
}

type Listed = z.infer<typeof listedLogs>['data'][number];

/** The log of the zone in another year: its key is the same under another name, and its files are beside those of this one. */
export function logOfYear({ vkey, prefix }: Listed, year: string): Pick<Listed, 'vkey' | 'prefix'> | undefined {
  const key = readVerifierKey(vkey);
  const LAST = /\d{4}$/;
  if (!key || !/^\d{4}$/.test(year) || !LAST.test(key.name) || !LAST.test(prefix)) return undefined;
  return { vkey: formatVerifierKey(key.name.replace(LAST, year), key.publicKey), prefix: prefix.replace(LAST, year) };
}

/** The log of a zone; the key is the one given, the one remembered, or, the first time, the one that the edge names. */
export async function findLog(
  { edge, zone, year, key }: Pick<Arguments, 'edge' | 'zone' | 'key'> & Partial<Pick<Arguments, 'year'>>,
  headers: Record<string, string>,
): Promise<Found | Answer> {
  const response = await fetch(`${edge}/v1/audit/log`, { headers });
  if (!response.ok) return refused(response);
  const { data } = listedLogs.parse(await response.json());
  const newest = zone === undefined ? data[0] : data.find((one) => one.zone === zone);
  if (!newest) return wrong(zone === undefined ? 'there is no log' : `there is no log of the zone ${zone}`);
  const log = year === undefined ? newest : logOfYear(newest, year);
  if (!log) return wrong(`"${year}" is no year of a log`);
  const base = `${edge}${log.prefix}`;
  const vkey = key ?? recall(base)?.vkey ?? log.vkey;
  const reader = await openReader(base, vkey, headers);
  return reader ? { base, vkey, reader } : wrong(`"${vkey}" is not the key of a log`);
}

/** A bundle in a folder is verified without asking anybody anything. */
export const needsNobody = ({ verb, operands }: Pick<Arguments, 'verb' | 'operands'>): boolean =>
  verb === 'audit' && operands[0] === 'verify' && operands[1] !== undefined && operands.length === 2;

export async function audit(given: Arguments, headers: Record<string, string>): Promise<Answer> {
  const [verb, what, ...rest] = given.operands;
  if (needsNobody(given)) return verifyFolder(what as string, given);
  const privacy = privacyVerbs.get(verb ?? '');
  if (privacy && rest.length === 0 && (what === undefined || verb === 'release')) return privacy(given, headers);
  if (verb === 'search' && what === undefined) return searchAudit(given, headers, findLog);
  if (verb === 'index' && what === undefined) return rebuildIndex(given, headers);
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
    return verb === 'tail' ? await tail(found) : await show(found, what as string);
  } catch (error) {
    if (error instanceof Refused) return refused(error.response);
    throw error;
  }
}

interface Entry {
  readonly index: number;
  readonly leaf: Leaf | undefined;
}

async function entriesFrom({ reader }: Found, from: number, size: number): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let bundle = Math.floor(from / TILE_WIDTH); bundle * TILE_WIDTH < size; bundle += 1) {
    for (const [at, entry] of (await fetchEntries(reader, bundle, size)).entries()) {
      entries.push({ index: bundle * TILE_WIDTH + at, leaf: leafOf(entry) });
    }
  }
  return entries.filter(({ index }) => index >= from);
}

async function tail(found: Found): Promise<Answer> {
  const { size } = (await fetchCheckpoint(found.reader)).checkpoint;
  const entries = await entriesFrom(found, Math.max(0, size - TAIL), size);
  return { exit: 0, text: entries.map(lineOf).join('\n'), value: { size, entries } };
}

/** One line: where, when, what, for whom, how. */
function lineOf({ index, leaf }: Entry): string {
  if (!leaf) return `${index}  (written by a newer version)`;
  const { t, type, tn = '-', req = '', action = '', status = '', reason = '' } = leaf as Leaf & Record<string, unknown>;
  const said = [action, status, reason].filter((part) => part !== '').join(' ');
  return [String(index).padStart(6), new Date(t.origin).toISOString(), type.padEnd(19), tn, req, said]
    .join('  ')
    .trimEnd();
}

async function show(found: Found, what: string): Promise<Answer> {
  const { size } = (await fetchCheckpoint(found.reader)).checkpoint;
  const index = /^\d+$/.test(what) ? Number(what) : undefined;
  if (index !== undefined && index >= size) return wrong(`the log has ${size} entries`);
  const all = index === undefined ? await entriesFrom(found, 0, size) : await entriesFrom(found, index, size);
  const entries = index === undefined ? all.filter(({ leaf }) => leaf?.req === what) : all.slice(0, 1);
  const text = entries.map((entry) => JSON.stringify(entry, undefined, 2)).join('\n');
  if (entries.length > 0) return { exit: 0, text, value: { size, entries } };
  return { exit: 1, text: `nothing of the request ${what} is in the log`, value: { size, entries } };
}

async function receipts(found: Found, what: string): Promise<Answer> {
  const { size } = (await fetchCheckpoint(found.reader)).checkpoint;
  const isIndex = /^\d+$/.test(what);
  if (isIndex && Number(what) >= size) return wrong(`the log has ${size} entries`);
  const all = isIndex ? [] : (await entriesFrom(found, 0, size)).filter(({ leaf }) => leaf?.req === what);
  const indexes = isIndex ? [Number(what)] : all.map(({ index }) => index);
  if (indexes.length === 0) return { exit: 1, text: `nothing of the request ${what} is in the log`, value: [] };
  const made: { index: number; receipt: string }[] = [];
  for (const index of indexes) {
    const bytes = await found.reader.fetch(`receipt/${index}`);
    const receipt = readReceipt(bytes);
    const note = receipt?.index === index ? new TextEncoder().encode(receipt.checkpoint) : new Uint8Array();
    if (!(await openCheckpoint(note, found.reader.verifier))) throw new Invalid(`the receipt of ${index} is none`);
    made.push({ index, receipt: new TextDecoder().decode(bytes) });
  }
  return { exit: 0, text: made.map(({ receipt }) => receipt.trimEnd()).join('\n\n'), value: made };
}
