import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { lineOfErased, lineOfWaiting, privacyVerbs } from '../../../infra/cli/audit-erase.ts';
import { verifyReceiptFile } from '../../../infra/cli/audit-receipt.ts';
import { proveHit, searchAudit } from '../../../infra/cli/audit-search.ts';
import type { Arguments } from '../../../infra/cli/options.ts';
import { toBase64 } from '../../../shared/audit/base64.ts';
import { signCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { commit, disclose } from '../../../shared/audit/commitment.ts';
import { encodeLeaf, type Leaf } from '../../../shared/audit/leaf.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { formatVerifierKey } from '../../../shared/audit/note-key.ts';
import { proveInclusion } from '../../../shared/audit/proof.ts';
import { formatReceipt } from '../../../shared/audit/receipt.ts';
import { foundEntries, type SearchHit } from '../../../shared/audit/search.ts';
import { hashLeaf, rootOf } from '../../../shared/audit/tree.ts';

const log = await openSigningKey(new Uint8Array(32).fill(5));
const other = await openSigningKey(new Uint8Array(32).fill(6));
// What the edge lists is the log of this year; the hits are of an earlier one.
const vkey = formatVerifierKey('audit.example/eu/2027', log.publicKey);
const ORIGIN = 'audit.example/eu/2026';
const ANN = `c1:${'a'.repeat(64)}`;
const { subject = '' } = await disclose(new Uint8Array(32).fill(3), { subject: ANN });
const { subject: another = '' } = await disclose(new Uint8Array(32).fill(4), { subject: ANN });

const leafOf = (index: number): Leaf => ({
  v: 1,
  id: `017f22e2-79b0-7cc3-98c4-${index.toString(16).padStart(12, '0')}`,
  type: 'inference.complete',
  by: 'edge',
  ...{ p: 'gate/dev/eu', ep: 'x', pseq: index + 1, tn: 'dev', tseq: index + 1, req: `r${index}`, model: 'm' },
  t: { origin: Date.UTC(2026, 10, 22), edge: 2, seq: 3 },
  sd: { subject: commit(subject) },
});
const entries = Array.from({ length: 5 }, (_, index) => encodeLeaf(leafOf(index)));
const hashes = entries.map(hashLeaf);
const root = rootOf(hashes);

async function hitOf(index: number, signer = log): Promise<SearchHit> {
  const read = async (height: number, at: number) => rootOf(hashes, at * 2 ** height, (at + 1) * 2 ** height);
  const proof = await proveInclusion(index, entries.length, read);
  const checkpoint = await signCheckpoint({ origin: ORIGIN, size: entries.length, root }, signer.signer(ORIGIN));
  return {
    ...{ year: 2026, index, leafHash: toBase64(hashes[index] as Uint8Array), disclosure: subject },
    entry: new TextDecoder().decode(entries[index]),
    receipt: formatReceipt({ index, proof, checkpoint }),
  };
}

type Query = Parameters<typeof proveHit>[2];
const nothing: Query = {
  request: undefined,
  subject: undefined,
  commitment: undefined,
  day: undefined,
  onlyModel: undefined,
  type: undefined,
};
const prove = async (hit: SearchHit, query: Partial<Query> = {}) => proveHit(hit, vkey, { ...nothing, ...query });

describe('C9 C12 auricle audit search believes no hit', () => {
  it('shows what is in the log, under the key of the log, as it was asked for', async () => {
    for (const index of [0, 2, 4])
      expect(await prove(await hitOf(index))).toMatchObject({ index, leaf: { tn: 'dev' } });
    const all = { request: 'r2', day: '2026-11-22', onlyModel: 'm', subject: 'ann' };
    expect(await prove(await hitOf(2), all)).toMatchObject({ commitment: ANN });
    expect(await prove(await hitOf(2), { commitment: ANN })).toMatchObject({ commitment: ANN });
  });

  it.each<[string, Partial<Query>]>([
    ['request', { request: 'r9' }],
    ['model', { onlyModel: 'n' }],
    ['day', { day: '2026-11-21' }],
    ['type', { type: 'export.create' }],
    ['somebody else', { commitment: `c1:${'b'.repeat(64)}` }],
  ])('one of another %s is not what was asked for', async (what, query) => {
    expect(await prove(await hitOf(2), query)).toContain(what);
  });

  it('anything about it that is changed makes it none', async () => {
    const [hit, wrong] = [await hitOf(2), await hitOf(3)];
    const changed = hit.entry.replace('"req":"r2"', '"req":"r8"');
    const forged = { ...hit, entry: changed, leafHash: toBase64(hashLeaf(new TextEncoder().encode(changed))) };
    const cases: [SearchHit, string, Partial<Query>?][] = [
      [{ ...hit, entry: changed }, 'another entry'],
      [forged, 'not in the log'],
      [{ ...hit, receipt: wrong.receipt }, 'the receipt is none'],
      [{ ...hit, index: 3, receipt: hit.receipt.replace('index 2', 'index 3') }, 'not in the log'],
      [{ ...hit, receipt: '' }, 'the receipt is none'],
      [await hitOf(2, other), 'not signed'],
      [{ ...hit, year: 2025 }, 'not signed'],
      [{ ...hit, disclosure: another }, 'whom it is about', { subject: 'ann' }],
      [{ ...hit, disclosure: undefined }, 'whom it is about', { subject: 'ann' }],
    ];
    for (const [given, said, query] of cases) expect(await prove(given, query)).toContain(said);
  });
});

it('C9 no answer of a search names a folder', () => {
  const answer = (zone: string) => foundEntries.safeParse({ zone, hits: [] }).success;
  expect(['eu', 'eu-west.1', '../eu', 'eu/x', '..', ''].map(answer)).toEqual([true, true, false, false, false, false]);
});

it('C12 a search names where it looked, and finds by the commitment that files of an export show', async () => {
  const asked: string[] = [];
  const edge = createServer((request, response) => {
    asked.push(`${request.url} ${String(request.headers['x-auricle-subject'])}`);
    response.end(JSON.stringify({ data: [{ zone: 'eu', hits: [] }] }));
  });
  await new Promise<void>((settle) => edge.listen(0, '127.0.0.1', settle));
  const { port } = edge.address() as AddressInfo;
  const given = { edge: `http://127.0.0.1:${port}`, operands: ['search'] } as unknown as Arguments;
  const find = async () => ({ vkey }) as never;
  const search = (subject: string) => searchAudit({ ...given, subject }, {}, find);
  expect(await search(ANN)).toMatchObject({ exit: 1, text: 'nothing was found in eu' });
  await search('ann');
  edge.close();
  expect(asked).toEqual([`/v1/audit/search?commitment=${ANN.replace(':', '%3A')} undefined`, '/v1/audit/search? ann']);
});

it('C9 what a search finds and writes is verified offline, entry by entry', async () => {
  const out = mkdtempSync(path.join(os.tmpdir(), 'auricle-search-'));
  try {
    const hits = [await hitOf(2), await hitOf(4)];
    const edge = createServer((_, response) => void response.end(JSON.stringify({ data: [{ zone: 'eu', hits }] })));
    await new Promise<void>((settle) => edge.listen(0, '127.0.0.1', settle));
    const { port } = edge.address() as AddressInfo;
    const given = { edge: `http://127.0.0.1:${port}`, operands: ['search'], type: 'inference.complete', out };
    const found = await searchAudit(given as unknown as Arguments, {}, async () => ({ vkey }) as never);
    edge.close();
    expect(found.exit).toBe(0);
    expect(readdirSync(out).sort()).toEqual(
      ['2', '4'].flatMap((at) => [`eu-2026-${at}.json`, `eu-2026-${at}.tlog-proof`]),
    );
    const policy = path.join(out, 'policy');
    writeFileSync(policy, `log ${formatVerifierKey(ORIGIN, log.publicKey)}\nquorum none\n`);
    for (const at of [2, 4]) {
      const receipt = path.join(out, `eu-2026-${at}.tlog-proof`);
      expect(await verifyReceiptFile({ receipt, policy })).toMatchObject({ exit: 10, value: { index: at } });
    }
    const entry = path.join(out, 'eu-2026-4.json');
    expect((await verifyReceiptFile({ receipt: path.join(out, 'eu-2026-2.tlog-proof'), policy, entry })).exit).toBe(40);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
});

describe('C12 auricle audit erase and hold', () => {
  it('do nothing without whom, or why', async () => {
    const given = (more: Partial<Arguments>) =>
      ({ operands: ['x'], edge: 'http://nowhere.invalid', ...more }) as Arguments;
    const run = async (verb: string, more: Partial<Arguments>) => privacyVerbs.get(verb)?.(given(more), {});
    expect((await run('erase', { basis: 'gdpr-17' }))?.exit).toBe(2);
    expect((await run('erase', { subject: 'ann' }))?.exit).toBe(2);
    const anyWord = await run('erase', { subject: 'ann', basis: 'because' });
    expect(anyWord).toMatchObject({
      exit: 2,
      text: expect.stringMatching(/gdpr-17, ccpa-1798\.105, .* or other:NAME/),
    });
    expect((await run('hold', { subject: 'ann' }))?.exit).toBe(2);
  });

  it('an erasure that waits says what it was asked by, when it is asked again by another', () => {
    const waits = { zone: 'eu', outcome: 'deferred' as const, basis: 'hold', asked: 'gdpr-17', count: 0 };
    expect(lineOfErased(waits, 'contract')).toBe(
      'eu  waits until it is released (hold); already asked with basis gdpr-17',
    );
    expect(lineOfErased(waits, 'gdpr-17')).not.toContain('already');
    const listed = { zone: 'eu', subject: ANN, basis: 'gdpr-17', at: 0, deferred: { basis: 'hold' } };
    expect(lineOfWaiting(listed)).toBe(
      `eu  ${ANN}  asked 1970-01-01, waits until it is released (hold), and goes on by itself within five minutes of that`,
    );
    const none = { zone: 'eu', outcome: 'nothing' as const, basis: 'gdpr-17', count: 0 };
    expect(lineOfErased(none, 'gdpr-17')).toMatch(/what it did to the record itself .* stays$/);
    const done = { zone: 'eu', outcome: 'done' as const, basis: 'gdpr-17', asked: 'gdpr-17', count: 1 };
    expect(lineOfErased(done, 'gdpr-17')).toMatch(/1 record$/);
  });
});
