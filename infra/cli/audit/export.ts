// auricle audit export --out DIR: requests an export, waits for it and downloads its files. Resumes an
// interrupted download.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exportStatus, redactionProfile } from '../../../shared/audit/bundle/contract.ts';
import { MANIFEST, MANIFEST_NOTE, POLICY } from '../../../shared/audit/bundle/manifest.ts';
import { openJudge } from '../../../shared/audit/judge.ts';
import { readPolicy } from '../../../shared/audit/policy.ts';
import { readKnownHead } from '../../../shared/audit/verify/check-heads.ts';
import { isPath, readManifest } from '../../../shared/audit/verify/read-manifest.ts';
import { reportText } from '../../../shared/audit/verify/report.ts';
import { verifyBundle } from '../../../shared/audit/verify/verify-bundle.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import { printLine } from '../environment.ts';
import type { Arguments } from '../options.ts';
import { openFolder } from './bundle-folder.ts';
import { nameOtherZones, otherZones } from './find.ts';
import { listedLogs } from './log.ts';
import { recall } from './memory.ts';
import { nativeHashing } from './native-hash.ts';

/** Interval at which the command line polls an export: its steps take seconds. */
const EXPORT_POLL_MS = 1_000;

/** State of a download into a folder. */
const JOURNAL = '.export.json';

type Headers = Record<string, string>;
export type ExportArguments = Pick<
  Arguments,
  'edge' | 'zone' | 'year' | 'out' | 'purpose' | 'from' | 'to' | 'format' | 'profile'
>;

export interface ExportEnv {
  pause(ms: number): Promise<void>;
  print(line: string): void;
}

export const realEnv: ExportEnv = {
  pause: (ms) => sleep(ms),
  print: printLine,
};

export async function exportAudit(given: ExportArguments, headers: Headers, world = realEnv): Promise<Answer> {
  const { out, edge, to, year, zone } = given;
  if (out === undefined) return wrong('missing --out DIR');
  if (year !== undefined && !/^\d{4}$/.test(year)) return wrong(`"${year}" is not a year of a log`);
  const journal = path.join(out, JOURNAL);
  const known = existsSync(journal) ? (JSON.parse(readFileSync(journal, 'utf8')) as { id?: string }).id : undefined;
  if (known === undefined && existsSync(path.join(out, 'manifest.json')))
    return wrong(`${out} has an export already: choose another folder, or verify it`);
  const id = known ?? (await begin(given, headers));
  if (typeof id !== 'string') return id;
  mkdirSync(out, { recursive: true });
  writeFileSync(journal, JSON.stringify({ id, edge }));
  const done = await waitFor(`${edge}/v1/audit/exports/${id}`, headers, world);
  if ('exit' in done) return done;
  if (done.state !== 'done' || !done.files) {
    rmSync(journal);
    return { exit: 1, text: `the export ${id} is ${done.state}: ${done.reason ?? 'no reason given'}`, value: done };
  }
  for (const [at, file] of done.files.entries()) {
    const failed = await fetchFile(`${edge}/v1/audit/exports/${id}/files`, file, out, headers);
    if (failed) return failed;
    if (at % 50 === 49) world.print(`${at + 1} of ${done.files.length} files`);
  }
  rmSync(journal);
  const head = await knownHead(given, headers);
  const seen = head && { head: new TextEncoder().encode(head.note) };
  const report = await verifyBundle(openFolder(out), { now: Date.now(), hashing: nativeHashing, ...seen });
  const ends =
    to === undefined ? '' : `\nentries continue after that as proof; disclosures and derived files end at ${to}`;
  const others = zone === undefined ? await otherZones(edge, headers, done.zone) : [];
  const beside = others.length > 0 ? `\n${nameOtherZones(others)}` : '';
  const text = `${done.files.length} files in ${out}${ends}\n${reportText(report)}${beside}\nverify it yourself: node ${path.join(out, 'verify.mjs')}`;
  // An export without witnesses is still complete.
  const value = {
    id,
    files: done.files.length,
    verdict: report.verdict,
    facts: report.facts,
    findings: report.findings,
    others,
  };
  return { exit: report.exit <= 10 ? 0 : report.exit, text, value };
}

/** Returns the id of a new export, or the reason for its refusal. */
async function begin(given: ExportArguments, headers: Headers) {
  const { edge, zone, year, from, to, purpose, format, profile } = given;
  if (purpose === undefined) return wrong('missing --purpose TEXT: the reason for the export, which is recorded');
  if (profile !== undefined && !redactionProfile.safeParse(profile).success)
    return wrong(`"${profile}" is not a profile: use full, auditor-min, or fields:NAME,NAME`);
  const head = await knownHead(given, headers);
  const body = {
    ...{ purpose, zone, from, to, redaction: profile, known_size: head?.size },
    year: year === undefined ? undefined : Number(year),
    formats: format === undefined ? undefined : format.split(',').filter((one) => one !== ''),
  };
  const response = await fetch(`${edge}/v1/audit/exports`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.ok ? exportStatus.parse(await response.json()).id : refused(response);
}

/** Checkpoint of the zone's log last seen on this machine. The bundle proves growth from it. */
async function knownHead({ edge, zone, year }: Pick<ExportArguments, 'edge' | 'zone' | 'year'>, headers: Headers) {
  const response = zone === undefined ? undefined : await fetch(`${edge}/v1/audit/log`, { headers });
  const logs = response?.ok ? listedLogs.parse(await response.json()).data : [];
  const log = logs.find((one) => one.zone === zone && (year === undefined || one.year === Number(year)));
  const note = log && recall(`${edge}${log.prefix}`)?.note;
  const checkpoint = note === undefined ? undefined : readKnownHead(new TextEncoder().encode(note));
  return note !== undefined && checkpoint && checkpoint.size > 0 ? { note, size: checkpoint.size } : undefined;
}

async function waitFor(url: string, headers: Headers, { pause, print }: ExportEnv) {
  let printed = '';
  for (;;) {
    const response = await fetch(url, { headers });
    if (!response.ok) return refused(response);
    const status = exportStatus.parse(await response.json());
    if (status.state !== 'accepted' && status.state !== 'running') return status;
    const line =
      status.size === undefined
        ? 'waits for the log'
        : `${status.entries} entries, ${status.scanned} of ${status.size} looked through`;
    if (line !== printed) print(line);
    printed = line;
    await pause(EXPORT_POLL_MS);
  }
}

/** Fetches a file unless an intact copy exists. */
async function fetchFile(
  base: string,
  { path: name, bytes, sha256 }: { readonly path: string; readonly bytes: number; readonly sha256: string },
  out: string,
  headers: Headers,
): Promise<Answer | undefined> {
  if (!isPath(name)) return wrong(`the edge named a file outside the export: ${JSON.stringify(name)}`);
  const target = path.join(out, ...name.split('/'));
  const digest = (of: Uint8Array) => createHash('sha256').update(of).digest('hex');
  if (existsSync(target) && statSync(target).size === bytes && digest(readFileSync(target)) === sha256)
    return undefined;
  const response = await fetch(`${base}/${name}`, { headers });
  if (!response.ok) return refused(response);
  const body = new Uint8Array(await response.arrayBuffer());
  if (digest(body) !== sha256)
    return { exit: 1, text: `${name} differs from what the manifest announced`, value: { name } };
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(`${target}.new`, body);
  renameSync(`${target}.new`, target);
  return undefined;
}

/** Returns the error of the reader's own policy or head. It does not concern the bundle. */
async function problemOfTrust(folder: string, policy: string | undefined, head: string | undefined) {
  const given = policy === undefined ? undefined : readPolicy(readFileSync(policy));
  if (given && !given.ok) return `the policy ${policy} cannot be read: ${given.refusal}`;
  const bytes = await openFolder(folder).read(MANIFEST);
  const manifest = bytes && readManifest(bytes);
  if (!manifest || 'wrong' in manifest) return undefined;
  const { origin } = manifest.log;
  const logs = given?.value.logs.map(({ key }) => key) ?? [];
  if (given && !logs.some(({ name }) => name === origin))
    return `the policy ${policy} has no key of ${origin}, which made this bundle; it names ${logs.map(({ name }) => name).join(', ')}`;
  // Without the reader's policy the bundle names the signers, so a foreign head may be the bundle's fault.
  if (head === undefined || !given) return undefined;
  const note = readFileSync(head);
  // An unsigned head is the reader's own claim. A head of another log fails later.
  if (!note.includes('\n\n') || readKnownHead(note)?.origin !== origin) return undefined;
  const judge = await openJudge(given.value);
  return (await judge(note)) ? undefined : `${head}: this checkpoint is not signed by the log`;
}

export async function verifyFolder(
  folder: string,
  { policy, head, after }: Partial<Pick<Arguments, 'policy' | 'head' | 'after'>>,
): Promise<Answer> {
  for (const file of [policy, head]) if (file !== undefined && !existsSync(file)) return wrong(`there is no ${file}`);
  if (!/^\d{0,15}$/.test(after ?? '')) return wrong('--after N: a number of the tenant');
  if (existsSync(folder) && !statSync(folder).isDirectory())
    return wrong(
      `no bundle here: ${folder} is a file; unpack it and name its folder, or run: node verify.mjs ${folder}`,
    );
  if (![MANIFEST, MANIFEST_NOTE, POLICY].some((name) => existsSync(path.join(folder, name))))
    return wrong(`no bundle here: ${folder}`);
  const unusable = await problemOfTrust(folder, policy, head);
  if (unusable !== undefined) return wrong(unusable);
  const report = await verifyBundle(openFolder(folder), {
    now: Date.now(),
    hashing: nativeHashing,
    ...(policy !== undefined && { policy: readFileSync(policy) }),
    ...(head !== undefined && { head: readFileSync(head) }),
    ...(after !== undefined && { after: Number(after) }),
  });
  return { exit: report.exit, text: reportText(report), value: report };
}
