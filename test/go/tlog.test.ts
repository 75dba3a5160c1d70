import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { nameOfReceived, receive } from '../../functions/audit/intake/intake.ts';
import { RightEdge } from '../../functions/audit/log/right-edge.ts';
import { Sequencer } from '../../functions/audit/sequencer/sequencer.ts';
import { signCheckpoint } from '../../shared/audit/checkpoint.ts';
import { openP256Key, type P256Key, p256Signer } from '../../shared/audit/ecdsa.ts';
import { openNote, openSigningKey, openVerifier } from '../../shared/audit/note.ts';
import { formatNoteKey, formatVerifierKey, readVerifierKey } from '../../shared/audit/note-key.ts';
import { MemoryStore } from '../fake/log-store.ts';
import { fsck, verifier } from './install.ts';
import { write, writeLogs } from './written-logs.ts';

const run = promisify(execFile);
const scratch = mkdtempSync(path.join(os.tmpdir(), 'auricle-go-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const ORIGIN = 'audit.example/eu/2026';
const { publicKey, signer } = await openSigningKey(new Uint8Array(32).fill(5));
// Unknown to Go's package, which has to verify the log all the same.
const second = (await openP256Key(
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ format: 'der', type: 'pkcs8' })
    .toString('base64'),
)) as P256Key;

/** A log on disk that grew in steps to these sizes, with a checkpoint for each. */
async function makeLog(name: string, sizes: readonly number[]): Promise<string> {
  const folder = path.join(scratch, name);
  const edge = new RightEdge();
  write(folder, 'vkey', formatVerifierKey(ORIGIN, publicKey));
  for (const size of sizes) {
    while (edge.facts.size < size) {
      const count = size - edge.facts.size;
      for (let at = 0; at < count; at += 1) edge.append(new TextEncoder().encode(`{"entry":${size - count + at}}`));
    }
    const note = await signCheckpoint({ origin: ORIGIN, size, root: edge.root() }, signer(ORIGIN));
    write(folder, 'checkpoint', note);
    write(folder, `checkpoints/${size}`, note);
  }
  for (const { path: name, bytes } of edge.files()) write(folder, name, bytes);
  return folder;
}

/** Logs that the sequencer made, as their readers would fetch them. */
const published: string[] = [];

const ask = (...folders: string[]): Promise<string> =>
  run(verifier, folders).then(
    ({ stdout }) => stdout,
    (error: { stdout?: string }) => error.stdout ?? String(error),
  );

describe('C9 golang.org/x/mod/sumdb verifies our logs', () => {
  it.each([
    [[1]],
    [[1, 2, 3, 5, 8, 13, 15]],
    [[255, 256]],
    [[256, 257, 511, 512, 513]],
    [[1, 1_000, 1_001, 3_000]],
    [[65_535, 65_536, 65_537, 66_000]],
  ])('a log that grew to %j', async (sizes) => {
    const folder = await makeLog(`grown-${sizes.at(-1)}-${sizes.length}`, sizes);
    expect(await ask(folder)).toBe(`OK ${ORIGIN} size ${sizes.at(-1)}, ${sizes.length} earlier checkpoints\n`);
  });

  it('finds one flipped bit in any file of a log', async () => {
    const folder = await makeLog('flipped', [100, 300]);
    const names = [
      'tile/0/000',
      'tile/0/001.p/44',
      'tile/1/000.p/1',
      'tile/entries/000',
      'checkpoint',
      'checkpoints/100',
    ];
    expect(await ask(folder)).toMatch(/^OK/);
    for (const name of names) {
      const whole = readFileSync(path.join(folder, name));
      const flipped = Uint8Array.from(whole);
      flipped[20] = (whole[20] as number) ^ 1;
      write(folder, name, flipped);
      expect(await ask(folder), name).toMatch(/^FAIL/);
      write(folder, name, whole);
    }
    expect(await ask(folder)).toMatch(/^OK/);
  });
});

describe('C9 we read what golang.org/x/mod/sumdb signs', () => {
  it('a note with a fresh key', async () => {
    const text = 'go.example/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n';
    const { stdout } = await run(verifier, ['sign', text]);
    const [vkey = '', ...note] = stdout.split('\n');
    const key = readVerifierKey(vkey);
    if (!key) throw new Error(`no key: ${vkey}`);
    const opened = await openNote(new TextEncoder().encode(note.join('\n')), [
      await openVerifier(key.name, key.publicKey),
    ]);
    expect(opened).toMatchObject({ text, signers: ['go.example/log'] });
  });
});

describe('C9 golang.org/x/mod/sumdb verifies what the sequencer publishes', () => {
  it('after commits of several sizes, across a full tile and a year’s end', async () => {
    const store = new MemoryStore();
    let now = Date.UTC(2026, 11, 31, 23, 0, 0);
    const newId = () => crypto.randomUUID();
    const base = 'audit.example';
    const signers = (name: string) => [signer(name), p256Signer(second, name)];
    const parts = { store, zone: 'eu', base, signers, now: () => ++now, newId };
    const sequencer = new Sequencer(parts);
    const epoch = crypto.randomUUID();
    let next = 1;
    for (const count of [1, 3, 200, 100, 7, 300, 1]) {
      const rows = Array.from({ length: count }, (_, at) => {
        const event = { v: 1, id: newId(), type: 'route', at: now, producer: 'edge', tenant: 'dev', subject: `s${at}` };
        return { to: next + at, t: now, events: [event] };
      });
      const delivery = { v: 1 as const, producer: 'gate/dev/eu', epoch, oldest: next, rows };
      const received = await receive(delivery, now, async () => 'hidden');
      if (!received) throw new Error('nothing received');
      await store.create('intake', nameOfReceived('eu', received), new TextEncoder().encode(JSON.stringify(received)));
      next += count;
      // The sixth falls into the next year: the log of this one is closed, the next one opened.
      if (next > 320 && next < 900) now = Math.max(now, Date.UTC(2027, 0, 1));
      for (let rounds = 0; rounds < 5; rounds += 1) await sequencer.round();
    }
    const folders = writeLogs(store, path.join(scratch, 'published'), publicKey);
    published.push(...folders);
    expect((await ask(...folders)).split('\n')).toEqual([
      expect.stringMatching(/^OK audit\.example\/eu\/2026 size \d+, \d+ earlier checkpoints$/),
      expect.stringMatching(/^OK audit\.example\/eu\/2027 size \d+, \d+ earlier checkpoints$/),
      '',
    ]);
  });
});

/** It goes on asking for what is not there. */
const FSCK_MS_MAX = 5_000;

/** Runs Tessera's fsck over a log under a key. It exits with 0 whatever it finds: its output counts. */
async function check(folder: string, vkey: string): Promise<'good' | 'bad'> {
  write(scratch, 'key', vkey);
  const given = ['--storage_url', `file://${folder}/`, '--public_key', path.join(scratch, 'key'), '--ui=false'];
  const { stderr } = await run(fsck, given, { timeout: FSCK_MS_MAX }).catch((error: { stderr: string }) => error);
  return /Successfully fsck'd/i.test(stderr) && !/level=ERROR|failed/i.test(stderr) ? 'good' : 'bad';
}

describe('C9 Tessera’s fsck', () => {
  it('passes what the sequencer publishes, under either of its keys', async () => {
    for (const folder of published) {
      const name = readFileSync(path.join(folder, 'vkey'), 'utf8').split('+')[0] ?? '';
      const keys = [
        formatNoteKey({ type: 'ed25519', name, publicKey }),
        formatNoteKey({ type: 'p256', name, publicKey: second.publicKey }),
      ];
      for (const vkey of keys) expect(await check(folder, vkey), vkey).toBe('good');
      const stranger = (await openSigningKey(new Uint8Array(32).fill(6))).publicKey;
      expect(await check(folder, formatNoteKey({ type: 'ed25519', name, publicKey: stranger }))).toBe('bad');
    }
    expect(published).toHaveLength(2);
  });

  it('finds a flipped bit, a missing bundle and another checkpoint', async () => {
    const folder = await makeLog('checked', [300, 700]);
    const vkey = formatVerifierKey(ORIGIN, publicKey);
    expect(await check(folder, vkey)).toBe('good');
    for (const name of ['tile/0/000', 'tile/0/002.p/188', 'tile/1/000.p/2', 'tile/entries/001', 'checkpoint']) {
      const whole = readFileSync(path.join(folder, name));
      const flipped = Uint8Array.from(whole);
      flipped[40] = (whole[40] as number) ^ 1;
      write(folder, name, flipped);
      expect(await check(folder, vkey), name).toBe('bad');
      write(folder, name, whole);
    }
    rmSync(path.join(folder, 'tile/entries/001'));
    expect(await check(folder, vkey)).toBe('bad');
  });
});
