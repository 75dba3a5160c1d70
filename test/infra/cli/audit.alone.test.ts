import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RightEdge } from '../../../functions/audit/log/right-edge.ts';
import { audit } from '../../../infra/cli/audit/audit.ts';
import { LOG_FILE_BYTES } from '../../../infra/cli/audit/log.ts';
import { verifyReceiptFile } from '../../../infra/cli/audit/receipt.ts';
import type { Arguments } from '../../../infra/cli/options.ts';
import { signCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { commit } from '../../../shared/audit/commitment.ts';
import { cosigner } from '../../../shared/audit/cosignature.ts';
import { encodeLeaf, type Leaf } from '../../../shared/audit/leaf.ts';
import { formatNoteKey, formatVerifierKey } from '../../../shared/audit/note-key.ts';
import { proveInclusion } from '../../../shared/audit/proof.ts';
import { formatReceipt } from '../../../shared/audit/receipt.ts';
import { hashLeaf, rootOf } from '../../../shared/audit/tree.ts';
import * as made from './published-log.ts';

const { at, event, filesOf, leavesOf, log, opening, ORIGIN, other, PREFIX, seer, vkey } = made;

/** The logs that it lists, and what it has: files of a log by their path. */
let listed: object[] = [];
let files = new Map<string, Uint8Array>();

async function publish(leaves: readonly Leaf[], signer = log): Promise<void> {
  files = await filesOf(leaves, signer);
}

/** Answer of a search; absent when search is unavailable. */
let found: object | undefined;
/** Paths that were asked for. */
const asked: string[] = [];

const server = createServer((request, response) => {
  const url = (request.url ?? '').split('?')[0] ?? '';
  asked.push(url);
  if (url === '/v1/audit/search' && found) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data: [found] }));
    return;
  }
  if (url === '/v1/audit/log') {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data: listed }));
    return;
  }
  const file = files.get(url.slice(PREFIX.length + 1));
  response.statusCode = file ? 200 : 404;
  response.end(file ?? '{}');
});
let edge = '';
let folder = '';
beforeAll(async () => {
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  edge = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-audit-'));
  process.env.AURICLE_AUDIT = folder;
  listed = [{ zone: 'eu', year: 2026, vkey, prefix: PREFIX }];
  found = undefined;
  return () => rmSync(folder, { recursive: true, force: true });
});

const call = (operands: string[], given: Partial<Arguments> = {}) =>
  audit({ edge, operands, ...given } as Arguments, { authorization: 'Bearer t' });
const verify = (given: Partial<Arguments> = {}) => call(['verify'], given);

describe('C9 auricle audit verify', () => {
  it.each([1, 2, 256, 257, 700])('a valid log of %i entries without a witness: 10', async (size) => {
    await publish(leavesOf(size));
    expect(await verify()).toMatchObject({ exit: 10, value: { verdict: 'unwitnessed', size } });
  });

  it('a grown log is the known log', async () => {
    await publish(leavesOf(300));
    await verify();
    await publish(leavesOf(600));
    expect((await verify()).text).toContain('grown from 300');
  });

  it('one flipped bit, in any file: 40', async () => {
    await publish(leavesOf(600));
    for (const [name, bytes] of files) {
      for (const place of [0, Math.floor(bytes.length / 2), bytes.length - 1]) {
        const flipped = Uint8Array.from(bytes);
        flipped[place] = (bytes[place] as number) ^ 1;
        files.set(name, flipped);
        expect(await verify(), `${name} at ${place}`).toMatchObject({ exit: 40, value: { verdict: 'invalid' } });
      }
      files.set(name, bytes);
    }
    expect((await verify()).exit).toBe(10);
  });

  it('a file that is missing, cut off, or another one: 40', async () => {
    await publish(leavesOf(600));
    for (const [name, bytes] of [...files].filter(([one]) => one !== 'checkpoint')) {
      files.delete(name);
      expect((await verify()).exit, `${name} missing`).toBe(40);
      files.set(name, bytes.slice(0, -32));
      expect((await verify()).exit, `${name} cut off`).toBe(40);
      files.set(name, bytes);
    }
    const [first, second] = ['tile/entries/000', 'tile/entries/001'].map((name) => files.get(name) as Uint8Array);
    files.set('tile/entries/000', second as Uint8Array);
    files.set('tile/entries/001', first as Uint8Array);
    expect((await verify()).exit, 'swapped').toBe(40);
  });

  it('signed with another key: 40; a listed key other than the known one: 30', async () => {
    await publish(leavesOf(10), other);
    expect((await verify()).exit).toBe(40);
    await publish(leavesOf(10));
    await verify();
    expect((await verify({ key: formatVerifierKey(ORIGIN, other.publicKey) })).exit).toBe(30);
  });

  it('a new log with another key: 30, naming the file to remove', async () => {
    await publish(leavesOf(10));
    await verify();
    await publish(leavesOf(5), other);
    expect(await verify()).toMatchObject({ exit: 40 });
    listed = [{ zone: 'eu', year: 2026, vkey: formatVerifierKey(ORIGIN, other.publicKey), prefix: PREFIX }];
    const [file = ''] = readdirSync(folder);
    const text = expect.stringContaining(`remembered in ${path.join(folder, file)}; if the log is new on purpose`);
    for (const verb of [['verify'], ['tail'], ['show', '1']])
      expect(await call(verb)).toMatchObject({ exit: 30, text });
    rmSync(path.join(folder, file));
    expect((await verify()).exit).toBe(10);
  });

  it('with several zones, the first one’s, naming the others; with --zone none', async () => {
    await publish(leavesOf(3));
    listed = ['eu', 'us'].map((zone) => ({ zone, year: 2026, vkey, prefix: PREFIX.replace('eu', zone) }));
    for (const operands of [['verify'], ['tail'], ['show', '1']])
      expect((await call(operands)).note).toBe('not in here: the log of us (--zone us)');
    expect((await verify({ zone: 'eu' })).note).toBeUndefined();
  });

  it('shorter than known, or with another end or beginning: 30', async () => {
    await publish(leavesOf(300));
    await verify();
    const changed = leavesOf(400).map((leaf, index) => (index === 299 ? { ...leaf, reason: 'changed' } : leaf));
    for (const leaves of [leavesOf(299), changed.slice(0, 300), changed]) {
      await publish(leaves);
      expect(await verify(), `${leaves.length}`).toMatchObject({ exit: 30, value: { verdict: 'diverged' } });
    }
    await publish(leavesOf(301));
    expect((await verify()).exit).toBe(10);
  });

  it('a key holder drops 1 or 3 events, or doubles one: 20', async () => {
    const whole = leavesOf(300);
    const without = (from: number, count: number) => whole.filter((_, index) => index < from || index >= from + count);
    for (const leaves of [without(1, 1), without(150, 1), without(150, 3), [...whole, whole.at(-1) as Leaf]]) {
      rmSync(folder, { recursive: true, force: true });
      await publish(leaves);
      expect(await verify()).toMatchObject({ exit: 20, value: { verdict: 'incomplete' } });
    }
  });

  it('events that an outbox lost are reported once: 20', async () => {
    const told = { from: 5, to: 9, outbox: 'gate/dev/eu', epoch: at(0) };
    const gap: Leaf = { ...opening, id: at(99), type: 'producer.gap', pseq: 2, ...told };
    await publish([...leavesOf(5), gap, event(10, 10, 5)]);
    const { exit, value } = await verify();
    expect(exit).toBe(20);
    expect((value as { holes: string[] }).holes).toEqual([
      'entry 5: events 5 to 9 of gate/dev/eu were lost before they reached the log',
    ]);
  });
});

describe('C9 auricle audit verify: lives and years', () => {
  it('a broken-off outbox has no last number; late events count on', async () => {
    const told = { from: 5, outbox: 'gate/dev/eu', epoch: at(0) };
    const gap: Leaf = { ...opening, id: at(99), type: 'producer.gap', pseq: 2, ...told };
    await publish([...leavesOf(5), gap, event(10, 5, 5)]);
    const { exit, value } = await verify();
    expect(exit).toBe(20);
    expect((value as { holes: string[] }).holes).toEqual([
      'entry 5: gate/dev/eu was broken off: events from 5 on may have been lost before they reached the log',
    ]);
  });

  it('another year’s log, under its own name and the same key', async () => {
    await publish(leavesOf(3));
    expect((await verify({ year: '2026' })).exit).toBe(10);
    // The one that is served in its place is not of that year.
    expect(await verify({ year: '2025' })).toMatchObject({ exit: 40, text: expect.stringContaining('eu/2025') });
    const hashes = leavesOf(3).map((leaf) => hashLeaf(encodeLeaf(leaf)));
    const checkpoint = { origin: 'audit.example/eu/2025', size: 3, root: rootOf(hashes, 0, 3) };
    const note = await signCheckpoint(checkpoint, log.signer(checkpoint.origin));
    files.set('checkpoint', new TextEncoder().encode(note));
    expect((await verify({ year: '2025' })).exit).toBe(10);
    expect((await verify({ year: 'last' })).exit).toBe(2);
  });
});

describe('C9 auricle audit verify: what the edge may say of a log', () => {
  it('not at its place: a log elsewhere would be unknown', async () => {
    await publish(leavesOf(300));
    expect((await verify()).exit).toBe(10);
    await publish(leavesOf(50), other);
    const forged = formatVerifierKey(ORIGIN, other.publicKey);
    listed = [{ zone: 'eu', year: 2026, vkey: forged, prefix: '/v1/audit/log/eu//2026' }];
    expect(await verify()).toMatchObject({ exit: 2, text: expect.stringContaining('unknown list of logs') });
    listed = [{ zone: 'eu', year: 2026, vkey: forged, prefix: PREFIX }];
    expect((await verify()).exit).toBe(30);
  });

  it('not which key an auditor believes, whether or not it shows witnesses', async () => {
    await publish(leavesOf(5), other);
    listed = [{ zone: 'eu', year: 2026, vkey: formatVerifierKey(ORIGIN, other.publicKey), prefix: PREFIX }];
    const policy = path.join(folder, 'policy.txt');
    writeFileSync(policy, `log ${vkey.slice(0, -6)}AAAA==\nquorum none\n`);
    expect(await verify({ policy })).toMatchObject({ exit: 2, text: expect.stringContaining('cannot be read') });
    writeFileSync(policy, `log ${vkey}\nquorum none\n`);
    expect(await verify({ policy })).toMatchObject({ exit: 40, text: expect.stringContaining('does not name') });
    expect((await verify()).exit).toBe(10);
  });
});

describe('C9 auricle audit verify: witnesses', () => {
  const WITNESS = 'witness.example';
  const text = `log ${vkey}\nwitness w ${formatNoteKey({ type: 'cosignature', name: WITNESS, publicKey: seer.publicKey })}\nquorum w\n`;
  const witnessKey = (name: string, publicKey: Uint8Array) => formatNoteKey({ type: 'cosignature', name, publicKey });
  const served = () => files.set('policy', new TextEncoder().encode(text));

  /** Returns the checkpoint as served after a witness signed it `minutes` ago. */
  async function witness(leaves: readonly Leaf[], minutes = 0, by = seer): Promise<Uint8Array> {
    const edge = new RightEdge();
    for (const leaf of leaves) edge.append(encodeLeaf(leaf));
    const checkpoint = { origin: ORIGIN, size: edge.size, root: edge.root() };
    const time = Math.floor(Date.now() / 1_000) - minutes * 60;
    const signers = [
      log.signer(ORIGIN),
      cosigner(WITNESS, { publicKey: seer.publicKey, sign: by.signer('').sign }, () => time),
    ];
    return new TextEncoder().encode(await signCheckpoint(checkpoint, ...signers));
  }

  it('witnessed by enough, now or at its end: 0; the log may be ahead', async () => {
    await publish(leavesOf(300));
    served();
    files.set('witnessed', await witness(leavesOf(300), 60));
    expect(await verify()).toMatchObject({ exit: 0, value: { verdict: 'witnessed' } });
    files.set('witnessed', await witness(leavesOf(290)));
    expect((await verify()).text).toContain('290 of them witnessed by w');
  });

  it('witnessed ten minutes ago, never, or by others than the policy’s: 10', async () => {
    await publish(leavesOf(300));
    served();
    expect((await verify()).exit).toBe(10);
    files.set('witnessed', await witness(leavesOf(290), 11));
    expect((await verify()).exit).toBe(10);
    files.set('witnessed', await witness(leavesOf(300)));
    const policy = path.join(folder, 'policy.txt');
    writeFileSync(policy, text.replace(witnessKey(WITNESS, seer.publicKey), witnessKey('x', other.publicKey)));
    expect((await verify({ policy })).exit).toBe(10);
    expect((await verify({ policy: path.join(folder, 'none') })).exit).toBe(2);
  });

  it('a fork of the witnessed log: 30; a wrong signature or policy: 40', async () => {
    await publish(leavesOf(300));
    served();
    const changed = leavesOf(290).map((leaf, index) => (index === 7 ? { ...leaf, reason: 'changed' } : leaf));
    for (const leaves of [changed, leavesOf(301)]) {
      files.set('witnessed', await witness(leaves));
      expect(await verify(), `${leaves.length}`).toMatchObject({ exit: 30, value: { verdict: 'diverged' } });
    }
    const forged = await witness(leavesOf(300), 0, other);
    files.set('witnessed', forged);
    expect((await verify()).exit).toBe(40);
    files.set('witnessed', await witness(leavesOf(300)));
    files.set('policy', new TextEncoder().encode(text.replace(vkey, formatVerifierKey(ORIGIN, other.publicKey))));
    expect((await verify()).exit).toBe(40);
  });
});

describe('C9 auricle audit show and tail', () => {
  it('the last entries, one by its number, and all of a request', async () => {
    await publish(leavesOf(300));
    expect((await call(['tail'])).text.split('\n')).toHaveLength(20);
    expect(await call(['show', '299'])).toMatchObject({ exit: 0, value: { entries: [{ index: 299 }] } });
    expect(await call(['show', 'r7'])).toMatchObject({
      exit: 0,
      value: { entries: [{ index: 7, leaf: { req: 'r7' } }] },
    });
    expect((await call(['show', 'nobody'])).exit).toBe(1);
    expect((await call(['show', '300'])).exit).toBe(2);
    expect((await call(['tail'], { zone: 'us' })).exit).toBe(2);
    // The last ones of a type, however far back they are.
    const rare = { ...event(5, 5, 5), type: 'export.create' };
    await publish(leavesOf(600).with(5, rare));
    expect(await call(['tail'], { type: 'export.create' })).toMatchObject({ value: { entries: [{ index: 5 }] } });
    expect((await call(['tail'], { type: 'inference.complete' })).text.split('\n')).toHaveLength(20);
    expect((await call(['tail'], { type: 'hold.set' })).exit).toBe(1);
  });

  const bundlesAsked = () =>
    asked.filter((name) => name.includes('/tile/entries/')).map((name) => name.split('/').at(-1));

  it('an entry needs one bundle; a request’s entries come by index, then by scan', async () => {
    const leaves = leavesOf(1_100).with(1_090, { ...event(1_090, 1_090, 1_090), req: 'r7' });
    await publish(leaves);
    asked.length = 0;
    expect(await call(['show', '5'])).toMatchObject({ value: { entries: [{ index: 5 }] } });
    expect(bundlesAsked()).toEqual(['000']);
    const hit = { year: 2026, index: 7, entry: '{}' };
    found = { zone: 'eu', hits: [hit, { ...hit, index: 8 }], indexed: { year: 2026, index: 1_024 } };
    asked.length = 0;
    expect(await call(['show', 'r7'])).toMatchObject({ value: { entries: [{ index: 7 }, { index: 1_090 }] } });
    expect(bundlesAsked()).toEqual(['000', '76']);
  });

  it('A21 opens what the caller may see, and believes no other value', async () => {
    const shown = Buffer.from(JSON.stringify(['salt', 'bytes', 42])).toString('base64url');
    const forged = Buffer.from(JSON.stringify(['salt', 'bytes', 43])).toString('base64url');
    const hiding = (at: number) => ({ ...event(at, at, at), sd: { bytes: commit(shown), model: commit('other') } });
    await publish([7, 8, 9].reduce((all, at) => all.with(at, hiding(at)), leavesOf(300)));
    const opened = async (index: string) => (await call(['show', index])).value;
    expect(await opened('7')).toMatchObject({ entries: [{ hidden: expect.stringContaining('404') }] });
    const [open, erased] = [
      { year: 2026, index: 7, entry: '{}', disclosed: [shown, forged] },
      { year: 2026, index: 8, entry: '{}', erased: true },
    ];
    found = { zone: 'eu', hits: [open, erased] };
    expect(await opened('7')).toMatchObject({ entries: [{ index: 7, shown: { bytes: 42 } }] });
    expect(await opened('8')).toMatchObject({ entries: [{ hidden: 'erased' }] });
    expect(await opened('9')).toMatchObject({ entries: [{ hidden: 'not for this caller' }] });
    expect(await opened('6')).not.toHaveProperty('entries.0.hidden');
  });

  it('a flipped bit in an entry, hash or upper tile is refused', async () => {
    await publish(leavesOf(600));
    const flip = async (name: string, operands: string[]) => {
      const bytes = files.get(name) as Uint8Array;
      files.set(name, bytes.with(bytes.length - 3, (bytes[bytes.length - 3] as number) ^ 1));
      await expect(call(operands), `${name}: ${operands.join(' ')}`).rejects.toThrow();
      files.set(name, bytes);
    };
    for (const operands of [['tail'], ['show', '599'], ['receipt', '599']]) {
      for (const name of ['tile/entries/002.p/88', 'tile/0/002.p/88', 'tile/1/000.p/2']) await flip(name, operands);
    }
    for (const name of ['tile/entries/000', 'tile/0/000', 'tile/1/000.p/2']) {
      await flip(name, ['show', 'r7']);
    }
    expect((await call(['tail'])).exit).toBe(0);
  });
});

describe('C9 auricle audit logs', () => {
  it('every year, newest first in each zone; another year is refused', async () => {
    const other = (year: number) => ({
      ...{ zone: 'eu', year, vkey: formatVerifierKey(`audit.example/eu/${year}`, log.publicKey) },
      prefix: `/v1/audit/log/eu/${year}`,
    });
    listed = [
      { ...other(2026), first: 3, size: 700, state: 'open' },
      { ...other(2025), first: 1, size: 90, state: 'closed' },
    ];
    const { exit, text } = await call(['logs'], { zone: 'eu' });
    expect([exit, ...text.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3).join('|'))]).toEqual([
      ...[0, 'eu/2026|open|3 to 700 entries', 'eu/2025|closed|1 to 90 entries'],
    ]);
    await publish(leavesOf(3));
    expect(await call(['tail'], { year: '2024' })).toMatchObject({
      ...{ exit: 2, text: 'there is no log of 2024, but of 2026, 2025' },
    });
    expect((await call(['tail'])).exit).toBe(0);
  });
});

describe('C9 auricle audit verify --receipt', () => {
  it('verifies an entry by receipt and policy without any request', async () => {
    const leaves = leavesOf(5);
    const [entries, hashes] = [leaves.map(encodeLeaf), leaves.map((one) => hashLeaf(encodeLeaf(one)))];
    const read = async (height: number, at: number) => rootOf(hashes, at * 2 ** height, (at + 1) * 2 ** height);
    const head = { origin: ORIGIN, size: 5, root: rootOf(hashes, 0, 5) };
    const seconds = Math.floor(Date.now() / 1_000);
    const witness = cosigner('w.example', { publicKey: seer.publicKey, sign: seer.signer('').sign }, () => seconds);
    const name = (end: string) => path.join(folder, `eu-2026-3${end}`);
    const put = async (...signers: Parameters<typeof signCheckpoint>[1][]) => {
      const checkpoint = await signCheckpoint(head, ...signers);
      const proof = await proveInclusion(3, 5, read);
      writeFileSync(name('.tlog-proof'), formatReceipt({ index: 3, proof, checkpoint }));
      writeFileSync(name('.json'), entries[3] as Uint8Array);
    };
    const seen = formatNoteKey({ type: 'cosignature', name: 'w.example', publicKey: seer.publicKey });
    const policy = path.join(folder, 'policy');
    writeFileSync(policy, `log ${vkey}\nwitness w ${seen}\nquorum w\n`);
    const ask = (given: Partial<Arguments> = {}) =>
      audit(
        {
          edge: 'http://nowhere.invalid',
          verb: 'audit',
          operands: ['verify'],
          receipt: name('.tlog-proof'),
          policy,
          ...given,
        } as Arguments,
        {},
      );
    await put(log.signer(ORIGIN));
    expect(await ask()).toMatchObject({ exit: 10, value: { verdict: 'unwitnessed', index: 3, leaf: { req: 'r3' } } });
    await put(log.signer(ORIGIN), witness);
    expect(await ask()).toMatchObject({ exit: 0, text: expect.stringContaining('witnessed by w') });
    expect((await ask({ entry: name('.json') })).exit).toBe(0);
    writeFileSync(name('.other'), entries[2] as Uint8Array);
    expect(await ask({ entry: name('.other') })).toMatchObject({ exit: 40, value: { verdict: 'invalid' } });
    // A receipt is unverified without trusted keys, for another log, or without an entry.
    writeFileSync(name('.policy'), `log ${formatVerifierKey('audit.example/us/2026', log.publicKey)}\nquorum none\n`);
    for (const given of [
      { policy: undefined },
      { policy: name('.policy') },
      { entry: name('.none') },
      { operands: ['verify', folder] },
    ])
      expect((await ask(given as Partial<Arguments>)).exit, JSON.stringify(given)).toBe(2);
    await put(other.signer(ORIGIN));
    expect(await ask()).toMatchObject({ exit: 40, text: expect.stringContaining('is not signed by') });
    writeFileSync(name('.tlog-proof'), 'c2sp.org/tlog-proof@v1\n');
    expect(await ask()).toMatchObject({ exit: 40, text: expect.stringContaining('is not a receipt') });
  });
});

describe('C9 auricle audit receipt', () => {
  it('for an entry and a request: the log’s files, if signed by it', async () => {
    const leaves = leavesOf(5);
    await publish(leaves);
    const hashes = leaves.map((one) => hashLeaf(encodeLeaf(one)));
    const read = async (height: number, at: number) => rootOf(hashes, at * 2 ** height, (at + 1) * 2 ** height);
    const checkpoint = new TextDecoder().decode(files.get('checkpoint'));
    const receipt = formatReceipt({ index: 3, proof: await proveInclusion(3, 5, read), checkpoint });
    files.set('receipt/3', new TextEncoder().encode(receipt));
    expect(await call(['receipt', '3'])).toMatchObject({ exit: 0, value: [{ index: 3, receipt }] });
    expect(await call(['receipt', 'r3'])).toMatchObject({ exit: 0, value: [{ index: 3, receipt }] });
    expect((await call(['receipt', 'nobody'])).exit).toBe(1);
    expect((await call(['receipt', '5'])).exit).toBe(2);
    const [out, policy] = [path.join(folder, 'receipts'), path.join(folder, 'policy')];
    await call(['receipt', '3'], { out });
    writeFileSync(policy, `log ${vkey}\nquorum none\n`);
    const written = path.join(out, 'eu-2026-3.tlog-proof');
    expect(await verifyReceiptFile({ receipt: written, policy })).toMatchObject({ exit: 10, value: { index: 3 } });
    files.set('receipt/2', new TextEncoder().encode(receipt));
    await expect(call(['receipt', '2'])).rejects.toThrow('the receipt of 2 is malformed');
  });

  it('a file longer than any of a log is not read to its end', async () => {
    await publish(leavesOf(5));
    files.set('tile/entries/000.p/5', new Uint8Array(LOG_FILE_BYTES + 1));
    await expect(call(['tail'])).rejects.toThrow('longer than its format allows');
  });
});
