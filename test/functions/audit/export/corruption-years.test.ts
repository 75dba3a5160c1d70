// The rows of the corruption matrix about where a log begins and ends: bundles that lie about what came before or after.
import { beforeAll, describe, expect, it } from 'vitest';
import { advanceExport } from '../../../../functions/audit/export/advance-export.ts';
import { type ExportRow, findExport, replaceExport } from '../../../../functions/audit/export/export-row.ts';
import { receiptsUnder } from '../../../../functions/audit/log/make-receipt.ts';
import type { LinkFiles, Manifest } from '../../../../shared/audit/bundle/manifest.ts';
import { openSigningKey, signNote } from '../../../../shared/audit/note.ts';
import { formatVerifierKey } from '../../../../shared/audit/note-key.ts';
import { formatReceipt, readReceipt } from '../../../../shared/audit/receipt.ts';
import { type VerifyOptions, verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { ExportedLog, logKey, readerOf, signedAgain, ZONE } from './exported-log.ts';

type Files = Map<string, Uint8Array>;
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);

/** ann: 1 to 9 in 2026, 10 to 14 in 2027 and more in 2028; bob is in all of them. */
let log: ExportedLog;
/** A log of the same origin and key with another story: ann has one less in 2026. */
let fork: ExportedLog;
let made: Files;
beforeAll(async () => {
  [log, fork] = [new ExportedLog(), new ExportedLog()];
  for (const [at, story] of [log, fork].entries()) {
    await story.write('bob', 3);
    await story.write('ann', 9 - at);
    for (const [year, count] of [
      [2027, 5],
      [2028, 2],
    ] as const) {
      story.now = Date.UTC(year, 5, 1);
      await story.commit();
      await story.write('ann', count);
      await story.write('bob', 3);
    }
  }
  made = await log.export('ann', { formats: [], query: { year: 2027 } });
});

const copy = (): Files => new Map([...made].map(([path, bytes]) => [path, bytes.slice()]));
const verdictOf = (files: Files, asked: Partial<VerifyOptions> = {}) =>
  verifyBundle(readerOf(files), { now: log.now + 60_000, ...asked });
const again = (files: Files, change: (manifest: Manifest) => Manifest = (same) => same) =>
  signedAgain(files, change, 'audit.example/eu/2027');
const linksOf =
  (change: (links: NonNullable<Manifest['links']>) => NonNullable<Manifest['links']>) => (one: Manifest) => ({
    ...one,
    links: change(one.links ?? { before: [], after: [] }),
  });
const link = (path: string): LinkFiles => ({ entry: `links/${path}.json`, receipt: `links/${path}.tlog-proof` });
const found = async (files: Files, asked: Partial<VerifyOptions> = {}) => {
  const { verdict, findings } = await verdictOf(files, asked);
  return { verdict, texts: findings.filter((one) => one.verdict === verdict).map(({ text }) => text) };
};

/** A leaf of the log of a year, with its receipt, in place of one of the bundle; `under` the checkpoint of that one. */
async function putLink(
  files: Files,
  path: string,
  [story, year, tenant, tseq]: readonly [ExportedLog, number, string, number],
  under?: Uint8Array,
): Promise<Files> {
  const other = await story.export(tenant, { formats: [], query: { year } });
  const lines = decode(other.get('entries.ndjson')).split('\n');
  const line = lines.find((one) => one.includes(`"tseq":${tseq},`)) ?? '';
  const [, index = '', leaf = ''] = /^\{"index":(\d+),"leaf":(.*)\}$/.exec(line) ?? [];
  const note = under ?? (await story.store.read('state', `${ZONE}/${year}/checkpoint`))?.bytes;
  if (!note) throw new Error('no checkpoint');
  files.set(`links/${path}.json`, encode(leaf));
  const receipt = await receiptsUnder(story.store, ZONE, year, note).make(Number(index));
  return files.set(`links/${path}.tlog-proof`, encode(receipt));
}

describe('C9 corruption matrix: where a log begins and ends', () => {
  it('nothing is wrong', async () => {
    expect((await verdictOf(copy())).verdict).toBe('unwitnessed');
    expect(JSON.parse(decode(made.get('manifest.json')))).toMatchObject({
      range: { tseq: [10, 14] },
      links: {
        before: [link('2026/before')],
        after: [link('2028/opening'), link('2028/after'), link('2028/export')],
      },
    });
    // The same files again, as a reader takes a log of whose later years its policy names the key.
    const policy = [2027, 2028].map((year) => `log ${formatVerifierKey(`audit.example/eu/${year}`, logKey.publicKey)}`);
    expect((await verdictOf(copy(), { policy: encode(`${policy[0]}\nquorum none\n`) })).verdict).toBe('unwitnessed');
  });

  it('one flipped bit in a link to other years, signed again or not', async () => {
    for (const [path, bytes] of [...made].filter(([one]) => one.startsWith('links/'))) {
      const files = copy().set(path, bytes.with(bytes.length >> 1, (bytes[bytes.length >> 1] as number) ^ 1));
      expect((await verdictOf(files)).verdict, path).toBe('invalid');
      expect((await verdictOf(await again(files))).verdict, path).toBe('invalid');
    }
  });

  it('without what shows where it begins, or where it ended', async () => {
    const start = await found(
      await again(
        copy(),
        linksOf(({ after }) => ({ before: [], after })),
      ),
    );
    expect(start).toEqual({
      verdict: 'incomplete',
      texts: [expect.stringContaining('begins with number 10 of the tenant by its own word')],
    });
    const known = await again(
      copy(),
      linksOf(({ after }) => ({ before: [], after })),
    );
    expect((await verdictOf(known, { after: 9 })).verdict).toBe('unwitnessed');
    const end = await found(
      await again(
        copy(),
        linksOf(({ before, after }) => ({ before, after: after.filter(({ entry }) => !entry.includes('/after.')) })),
      ),
    );
    // The leaf of the export is then the first that is shown, and is not the next one.
    expect(end).toEqual({ verdict: 'incomplete', texts: ['numbers 15 to 16 of the tenant are missing'] });
    const none = await found(
      await again(
        copy(),
        linksOf(({ before }) => ({ before, after: [] })),
      ),
    );
    expect(none).toMatchObject({
      verdict: 'invalid',
      texts: [expect.stringContaining('says that this export was made')],
    });
  });

  it('an earlier number, another tenant or another history in the link before', async () => {
    expect(await found(await again(await putLink(copy(), '2026/before', [log, 2026, 'ann', 8])))).toEqual({
      ...{ verdict: 'incomplete', texts: ['number 9 of the tenant is missing'] },
    });
    expect(await found(await again(await putLink(copy(), '2026/before', [log, 2026, 'bob', 3])))).toEqual({
      ...{ verdict: 'invalid', texts: ['links/2026/before.json is not one of the tenant ann'] },
    });
    for (const [year, tseq] of [
      [2026, 8],
      [2027, 10],
    ] as const)
      expect(await found(await again(await putLink(copy(), '2026/before', [fork, year, 'ann', tseq])))).toEqual({
        ...{ verdict: 'invalid', texts: ['links/2026/before.json is not in the log that this one goes on from'] },
      });
  });

  it('a number too late, or a later log of another history', async () => {
    const shown = readReceipt(made.get(link('2028/after').receipt) as Uint8Array);
    const later = await again(
      await putLink(copy(), '2028/after', [log, 2028, 'ann', 16], encode(shown?.checkpoint ?? '')),
    );
    expect(await found(later)).toEqual({
      ...{ verdict: 'incomplete', texts: ['number 15 of the tenant is missing'] },
    });
    const other = await fork.export('ann', { formats: [], query: { year: 2027 } });
    const files = copy();
    for (const [path, bytes] of other) if (path.startsWith('links/2028/')) files.set(path, bytes);
    const story = await found(await again(files));
    expect(story.verdict).toBe('invalid');
    expect(story.texts).toContain('links/2028/opening.json does not go on from the log before it');
  });

  it('a later checkpoint that the log did not sign, or none of its opening', async () => {
    const stranger = (await openSigningKey(new Uint8Array(32).fill(9))).signer('audit.example/eu/2028');
    const files = copy();
    for (const name of ['opening', 'after', 'export']) {
      const receipt = readReceipt(files.get(link(`2028/${name}`).receipt) as Uint8Array);
      if (!receipt) throw new Error('no receipt');
      const [text = ''] = receipt.checkpoint.split('\n\n');
      const checkpoint = await signNote(`${text}\n`, [stranger]);
      files.set(link(`2028/${name}`).receipt, encode(formatReceipt({ ...receipt, checkpoint })));
    }
    expect((await found(await again(files))).texts).toContain(
      'links/2028/opening.tlog-proof is not signed by audit.example/eu/2028',
    );
    const bare = await again(
      copy(),
      linksOf(({ before, after }) => ({ before, after: after.slice(1) })),
    );
    expect((await found(bare)).texts).toContain(
      'links/2028/after.json is not in a log that is shown to go on from this one',
    );
  });

  it('a year that is cut short: an earlier checkpoint, without the entries after it', async () => {
    const start = (await log.store.list('log', `${ZONE}/2027/checkpoints/`, 100)).map((name) =>
      Number(name.split('/').at(-1)),
    );
    const size = Math.max(...start.filter((one) => one < Math.max(...start)));
    const asked = await log.ask('ann', { formats: [], query: { year: 2027 } });
    await log.commit();
    for (let steps = 0; steps < 50; steps += 1) {
      const row = await log.row(asked);
      if (row.state === 'collecting') break;
      await advanceExport(log.desk, ZONE, 'ann', asked.id);
      log.now = Math.max(log.now, row.due);
    }
    const kept = await findExport(log.rows, ZONE, 'ann', asked.id);
    const note = await log.store.read('log', `${ZONE}/2027/checkpoints/${size}`);
    const end = await log.store.read('exports', `${ZONE}/ann/${asked.id}/checkpoints/end.txt`);
    if (!kept || !note || !end) throw new Error('no such export');
    await log.store.replace('exports', `${ZONE}/ann/${asked.id}/checkpoints/end.txt`, note.bytes, end.version);
    await replaceExport(log.rows, { ...kept.row, size } satisfies ExportRow, kept);
    const { verdict, texts } = await found(log.files(await log.finish(asked)));
    expect(verdict).toBe('invalid');
    expect(texts).toContain('links/2028/opening.json does not go on from the log before it');
  });

  it('an export of another year than requested', async () => {
    for (const change of [{ year: 2026, origin: 'audit.example/eu/2026' }, { query: {} }]) {
      const asked = await log.ask('ann', { formats: [], query: { year: 2027 } });
      const kept = await findExport(log.rows, ZONE, 'ann', asked.id);
      if (!kept) throw new Error('no such export');
      const { start: _, ...row } = kept.row;
      const told = { ...row, ...change };
      // The row says so, and the leaf of the log something else.
      await replaceExport(
        log.rows,
        'query' in change ? { ...told, year: 2028, origin: 'audit.example/eu/2028' } : told,
        kept,
      );
      const { verdict, texts } = await found(log.files(await log.finish(asked)));
      expect(verdict).toBe('invalid');
      expect(texts).toEqual([
        'query' in change
          ? 'the manifest names another range or profile than the export was made for'
          : 'the export was asked for of 2027, and is of audit.example/eu/2026',
      ]);
    }
  });
});
