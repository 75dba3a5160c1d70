import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { exportAudit, verifyFolder } from '../../../infra/cli/audit/export.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { formatVerifierKey } from '../../../shared/audit/note-key.ts';
import { ExportedLog } from '../../functions/audit/export/exported-log.ts';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'auricle-export-'));
const ID = 'eu-01a201f4-2654-711a-9e85-3ba66254767e';
let files: Map<string, Uint8Array>;
/** Requests to the edge. */
const asked: string[] = [];
const bodies: unknown[] = [];
/** Files that it gives before it says no. */
let patience = Number.POSITIVE_INFINITY;
/** Zones whose logs it lists. */
let zones: string[] = [];
/** Looks until the export is done. */
let looks = 0;

const status = (state: string) => ({
  ...{ id: ID, tenant: 'ann', zone: 'eu', state, created: '', purpose: 'audit', redaction: 'full', formats: [] },
  ...{ entries: 1, scanned: 2, size: 3 },
  ...(state === 'done' && {
    files: [...files].map(([name, bytes]) => {
      return { path: name, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
    }),
  }),
});

const server = createServer((request, response) => {
  const url = request.url ?? '';
  asked.push(`${request.method} ${url.replace(ID, 'ID')}`);
  const [, name] = url.split('/files/');
  if (url === '/v1/audit/log') {
    const data = zones.map((zone) => ({ zone, year: 2026, vkey: 'k', prefix: `/v1/audit/log/${zone}/2026` }));
    return void response.writeHead(200).end(JSON.stringify({ data }));
  }
  const send = (code: number, body: string | Uint8Array) => response.writeHead(code).end(body);
  if (request.method === 'POST') {
    let body = '';
    request.on('data', (some) => {
      body += some;
    });
    request.on('end', () => {
      bodies.push(JSON.parse(body));
      send(202, JSON.stringify(status('accepted')));
    });
    return;
  }
  if (name === undefined) {
    looks -= 1;
    return send(200, JSON.stringify(status(looks >= 0 ? 'running' : 'done')));
  }
  patience -= 1;
  return patience < 0 ? send(503, '{}') : send(200, files.get(name) ?? '');
});

beforeAll(async () => {
  const log = new ExportedLog();
  await log.write('ann', 10);
  files = await log.export('ann', { formats: ['csv'] });
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
});
afterEach(() => {
  asked.length = 0;
  patience = Number.POSITIVE_INFINITY;
});
afterAll(() => {
  server.close();
  rmSync(scratch, { recursive: true, force: true });
});

const strangerKey = async () =>
  formatVerifierKey('stranger.example/eu/2026', (await openSigningKey(new Uint8Array(32).fill(9))).publicKey);

const world = { pause: async () => {}, print: () => {} };
const take = (out: string, more = {}) =>
  exportAudit(
    {
      ...{ edge: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, out: path.join(scratch, out) },
      ...{
        zone: undefined,
        year: undefined,
        purpose: 'audit',
        from: undefined,
        to: undefined,
        format: undefined,
        profile: undefined,
      },
      ...more,
    },
    {},
    world,
  );

describe('A21 auricle audit export', () => {
  it('waits, fetches all files, and says what the bundle is worth', async () => {
    looks = 2;
    const { exit, text, value } = await take('one');
    expect(exit, text).toBe(0);
    expect(value).toMatchObject({ id: ID, files: files.size, verdict: 'unwitnessed' });
    for (const [name, bytes] of files)
      expect(readFileSync(path.join(scratch, 'one', name)), name).toEqual(Buffer.from(bytes));
    expect(asked.slice(0, 4)).toEqual(['POST /v1/audit/exports', ...Array(3).fill('GET /v1/audit/exports/ID')]);
    expect(existsSync(path.join(scratch, 'one', '.export.json'))).toBe(false);
    // It is never written over.
    expect((await take('one')).exit).toBe(2);
  });

  it('covers one zone and names the others; with --zone it names none', async () => {
    looks = 0;
    zones = ['eu', 'us'];
    const first = await take('zones');
    expect(first.text).toContain('not in here: the log of us (--zone us)');
    expect(first.value).toMatchObject({ others: ['us'] });
    looks = 0;
    expect((await take('zone', { zone: 'eu' })).text).not.toContain('not in here');
    zones = [];
  });

  it('lists the profiles before any request', async () => {
    const { exit, text } = await take('profile', { profile: 'nope' });
    expect([exit, text]).toEqual([2, '"nope" is not a profile: use full, auditor-min, or fields:NAME,NAME']);
    expect(asked).toEqual([]);
  });

  it('continues a broken download: same export, missing files only', async () => {
    looks = 0;
    patience = 4;
    expect((await take('two')).exit).toBe(1);
    asked.length = 0;
    patience = Number.POSITIVE_INFINITY;
    expect((await take('two')).exit).toBe(0);
    expect(asked.filter((line) => line.startsWith('POST'))).toEqual([]);
    expect(asked.filter((line) => line.includes('/files/'))).toHaveLength(files.size - 4);
  });

  it('asks for the year that is given', async () => {
    await take('year', { year: '2025' });
    expect(bodies.at(-1)).toMatchObject({ purpose: 'audit', year: 2025 });
    expect(await take('no-year', { year: 'last' })).toMatchObject({ exit: 2, text: '"last" is not a year of a log' });
  });

  it('says what it needs', async () => {
    expect((await take('three', { out: undefined })).exit).toBe(2);
    expect((await take('three', { purpose: undefined })).exit).toBe(2);
    expect(asked).toEqual([]);
  });
});

describe('C9 auricle audit verify FOLDER', () => {
  it('has the codes of the verifier', async () => {
    const folder = path.join(scratch, 'one');
    const nothing = { policy: undefined, head: undefined };
    expect(await verifyFolder(folder, nothing)).toMatchObject({ exit: 10, value: { verdict: 'unwitnessed' } });
    const said = (await verifyFolder(folder, nothing)).text;
    expect(said).toMatch(/numbers 1 to \d+, \d+ entries( \(\d+ of them the log's own, without a number\))?\n/);
    // The reader's input may be at fault, not the bundle.
    expect(await verifyFolder(mkdtempSync(path.join(scratch, 'empty-')), nothing)).toMatchObject({
      exit: 2,
      text: expect.stringContaining('no bundle here'),
    });
    const archive = path.join(scratch, 'one.zip');
    writeFileSync(archive, 'PK');
    expect(await verifyFolder(archive, nothing)).toMatchObject({
      exit: 2,
      text: `no bundle here: ${archive} is a file; unpack it and name its folder, or run: node verify.mjs ${archive}`,
    });
    const own = path.join(folder, 'policy.txt');
    const given = path.join(scratch, 'policy');
    writeFileSync(given, readFileSync(own, 'utf8').replaceAll(/(^log )\S+/gm, `$1${await strangerKey()}`));
    const other = await verifyFolder(folder, { ...nothing, policy: given });
    expect(other).toMatchObject({ exit: 2, text: expect.stringContaining('has no key of') });
    writeFileSync(given, 'nonsense');
    expect(await verifyFolder(folder, { ...nothing, policy: given })).toMatchObject({
      exit: 2,
      text: expect.stringContaining('cannot be read'),
    });
    const note = readdirSync(path.join(folder, 'checkpoints')).map((name) => path.join(folder, 'checkpoints', name))[0];
    const head = path.join(scratch, 'head');
    const signed = readFileSync(note ?? '', 'utf8');
    writeFileSync(head, signed);
    expect((await verifyFolder(folder, { policy: own, head })).exit).toBe(10);
    const wrong = signed.replace(/^(\S+\n\d+\n)\S+/, `$1${Buffer.alloc(32, 7).toString('base64')}`);
    writeFileSync(head, wrong);
    expect(await verifyFolder(folder, { policy: own, head })).toMatchObject({
      exit: 2,
      text: expect.stringContaining('not signed by the log'),
    });
    const entries = path.join(folder, 'entries.ndjson');
    writeFileSync(entries, readFileSync(entries, 'utf8').replace('"status":200', '"status":500'));
    expect((await verifyFolder(folder, nothing)).exit).toBe(40);
    expect((await verifyFolder(folder, { ...nothing, policy: path.join(scratch, 'none') })).exit).toBe(2);
  });
});
