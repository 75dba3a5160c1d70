import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildVerifier, writeVerifier } from '../../infra/verify/build.ts';
import { outlookOf } from '../../infra/verify/outlook.ts';
import { Overview, SHOWN_ENTRIES_MAX, SHOWN_TYPES_MAX, searchRows } from '../../infra/verify/overview.ts';
import type { LeafFacts } from '../../shared/audit/verify/leaf-facts.ts';
import type { Report } from '../../shared/audit/verify/verdict.ts';
import { ExportedLog } from '../functions/audit/export/exported-log.ts';
import { zipOf } from './zip-of.ts';

const run = promisify(execFile);
const scratch = mkdtempSync(path.join(os.tmpdir(), 'auricle-verify-'));
const folder = path.join(scratch, 'bundle');
const log = new ExportedLog({ witnessed: true });
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const write = (name: string, bytes: Uint8Array | string): void => {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  writeFileSync(path.join(folder, name), bytes);
};

beforeAll(async () => {
  const verifier = [...(await buildVerifier())].map(([name, text]) => [name, new TextEncoder().encode(text)] as const);
  await log.write('ann', 20);
  const row = await log.ask('ann');
  await log.commit();
  await log.witness();
  const done = await log.finish(row, { ...log.desk, verifier: new Map(verifier) });
  for (const [name, bytes] of log.files(done)) write(name, bytes);
});

const verify = (...given: string[]) =>
  run(process.execPath, [path.join(folder, 'verify.mjs'), ...given], { cwd: scratch }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: { code: number; stdout: string }) => ({ code: error.code, stdout: error.stdout }),
  );

describe('C9 verify.mjs, the file in a bundle', () => {
  it('is what the source makes, needs nothing, and is the same each time', async () => {
    const built = await buildVerifier();
    await writeVerifier(path.join(scratch, 'again'));
    for (const [name, text] of built) {
      expect(readFileSync(path.join(scratch, 'again', name), 'utf8'), name).toBe(text);
      expect(readFileSync(path.join(folder, name), 'utf8'), name).toBe(text);
    }
    const imports = [...(built.get('verify.mjs') ?? '').matchAll(/^import .* from "(.*)";$/gm)].map(([, from]) => from);
    expect(imports.length).toBeGreaterThan(0);
    expect(imports.every((from) => from?.startsWith('node:') || from === 'process')).toBe(true);
  });

  it('says yes in words and as JSON, with the code of its verdict', async () => {
    const told = await verify();
    expect(told.stdout).toMatch(/^witnessed \(0\): .*\n {2}log {8}audit\.example\/eu\/2026/);
    expect(told.code).toBe(0);
    const { code, stdout } = await verify(folder, '--json', '--tenant', 'ann');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'witnessed', facts: { entries: 22, tseq: [1, 21] } });
  });

  it('refuses another tenant, an unknown head, a changed file, a folder without bundle', async () => {
    expect((await verify('--tenant', 'bob')).code).toBe(40);
    const head = path.join(scratch, 'head.txt');
    const end = readFileSync(path.join(folder, 'checkpoints/end.txt'), 'utf8');
    writeFileSync(head, end.replace(/\n[^\n]+=\n/, `\n${Buffer.alloc(32, 1).toString('base64')}\n`));
    expect((await verify('--head', head)).code).toBe(30);
    const policy = path.join(scratch, 'mine.txt');
    writeFileSync(policy, readFileSync(path.join(folder, 'policy.txt'), 'utf8').replace(/^quorum .*$/m, 'quorum none'));
    expect((await verify('--policy', policy)).code).toBe(0);
    expect((await verify(path.join(scratch, 'nowhere'))).code).toBe(2);
    expect((await verify('--policy', path.join(scratch, 'nothing'))).code).toBe(2);
    const entries = readFileSync(path.join(folder, 'entries.ndjson'), 'utf8');
    write('entries.ndjson', entries.replace('"status":200', '"status":201'));
    const changed = await verify();
    expect(changed.code).toBe(40);
    expect(changed.stdout).toContain('files: entries.ndjson is not the file that the manifest lists [invalid]');
    write('entries.ndjson', entries);
  });
});

describe('C12 verify.mjs: what is no export, and archives of one', () => {
  const filesOf = (under: string) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name))
      .map((file) => [`${under}${path.relative(folder, file)}`, new Uint8Array(readFileSync(file))] as const);
  const put = (name: string, bytes: Uint8Array | string) => {
    writeFileSync(path.join(scratch, name), bytes);
    return path.join(scratch, name);
  };

  it('verifies a zip as it is, wherever in it the export lies', async () => {
    for (const under of ['', 'exports/ann/'])
      expect(await verify(put('export.zip', zipOf(filesOf(under))))).toMatchObject({ code: 0 });
    const changed = filesOf('').map(([name, bytes]) => [name, name === 'policy.txt' ? bytes : bytes.slice(1)] as const);
    expect(await verify(put('export.zip', zipOf(changed)))).toMatchObject({ code: 40 });
    // A size that no file of an export has is not believed.
    expect(
      (
        await verify(
          put(
            'export.zip',
            zipOf(filesOf(''), () => 0xffff_fff0),
          ),
        )
      ).code,
    ).not.toBe(0);
  });

  it('calls what is no export so, and never not valid', async () => {
    mkdirSync(path.join(scratch, 'other'), { recursive: true });
    put('other/manifest.json', '{"name":"an extension","version":"1"}');
    const none = [
      path.join(scratch, 'other'),
      put('picture.png', Buffer.from('89504e470d0a1a0a', 'hex')),
      put('other.zip', zipOf([['manifest.json', Buffer.from('[]')]])),
      put('cut.zip', zipOf(filesOf('')).subarray(0, 4_000)),
    ];
    for (const given of none) {
      const { code, stdout } = await verify(given);
      expect([given, code]).toEqual([given, 50]);
      expect(stdout).toMatch(/^no-export \(50\): This is no export/);
      expect(stdout).not.toMatch(/not valid/i);
    }
  });

  it('says so when no key from outside vouches', async () => {
    expect((await verify()).stdout).toContain('No key from outside the bundle vouches for it.');
    const given = await verify('--policy', path.join(folder, 'policy.txt'));
    expect(given.stdout).not.toContain('No key from outside');
  });
});

describe('C12 the page verify.html', () => {
  const state = (verdict: Report['verdict'], trust?: Report['facts']['trust']) =>
    outlookOf({ verdict, facts: trust ? { trust } : {} });

  it('is green for outside keys only, with words and a mark beside its colour', () => {
    expect(state('witnessed', 'policy given').state).toBe('good');
    for (const verdict of ['witnessed', 'unwitnessed', 'incomplete'] as const) {
      expect(state(verdict, 'policy of the bundle')).toMatchObject({ state: 'fair', advice: expect.any(String) });
    }
    expect(state('unwitnessed', 'policy given').state).toBe('fair');
    expect([state('diverged').state, state('invalid').state]).toEqual(['bad', 'bad']);
    expect(state('no-export')).toMatchObject({ state: 'none', title: 'This is no export', mark: '?' });
  });

  it('counts every entry, keeps a bounded number, and finds by type and content', () => {
    const overview = new Overview();
    for (let index = 0; index < SHOWN_ENTRIES_MAX + 5; index += 1) {
      const type = index < 200 ? `type.${index}` : 'inference.complete';
      const leaf = { type, request: `r-${index}`, status: index === 7 ? 500 : 200 };
      const facts = { leaf, id: `e-${index}`, type, tseq: index + 1, time: index } as unknown as LeafFacts;
      overview.add({ index, facts, shown: index === 9 ? { model: 'reference-en' } : {} });
    }
    expect([overview.entries, overview.rows.length]).toEqual([SHOWN_ENTRIES_MAX + 5, SHOWN_ENTRIES_MAX]);
    expect(overview.types).toHaveLength(SHOWN_TYPES_MAX + 1);
    expect(overview.types.reduce((sum, [, count]) => sum + count, 0)).toBe(SHOWN_ENTRIES_MAX + 5);
    expect([overview.from, overview.to]).toEqual([0, SHOWN_ENTRIES_MAX + 4]);
    const rows = overview.rows.slice(0, 1_000);
    expect(searchRows(rows, '"status": 500', '').map(({ id }) => id)).toEqual(['r-7']);
    expect(searchRows(rows, ' REFERENCE-en ', '').map(({ index }) => index)).toEqual([9]);
    expect(searchRows(rows, '', 'type.3').map(({ tseq }) => tseq)).toEqual([4]);
    expect(searchRows(rows, '', '')).toHaveLength(1_000);
  });
});

describe('C9 verify.html', () => {
  it('is one page without any request', async () => {
    const page = (await buildVerifier()).get('verify.html') ?? '';
    expect(page).toContain("default-src 'none'");
    expect(page).not.toMatch(
      /<(link|img|iframe)\b|\bsrc=|https?:\/\/(?!terminology\.hl7|dicom|profiles\.ihe|hl7\.org)/,
    );
    expect(page.match(/<\/script>/g)).toHaveLength(1);
  });
});
