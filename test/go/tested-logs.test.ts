// The logs that other tests make, made again with keys that Go's verifier knows: of the simulation, of chaos on the real
// emulator, and those that exports and searches are tested on. One process verifies all of them.
import { execFile } from 'node:child_process';
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { openBlobLogStore } from '../../functions/audit/log/blob-log-store.ts';
import { openSigningKey, type Signer } from '../../shared/audit/note.ts';
import { randomOf } from '../fake/random.ts';
import { chaos } from '../functions/audit/chaos.ts';
import { fetchAll } from '../functions/audit/emulated-log.ts';
import { startEmulator } from '../functions/audit/emulator.ts';
import { ExportedLog, logKey } from '../functions/audit/export/exported-log.ts';
import { HiddenLog, signingKey } from '../functions/audit/hidden-log.ts';
import { simulate } from '../functions/audit/simulate.ts';
import { verifier } from './install.ts';
import { writeLogs } from './written-logs.ts';

const run = promisify(execFile);
const scratch = mkdtempSync(path.join(os.tmpdir(), 'auricle-go-tested-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Stories of the simulation, and of those every fourth at the end of a year. */
const STORIES = 240;
const CHAOS = 4;
const folders: string[] = [];

const seed = new Uint8Array(32).fill(1);
const known = await openSigningKey(seed);
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const key = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });

/** The same key, which signs at once: what waits for a signature would leave the order of a story to the machine. */
const atOnce = (name: string): Signer => ({
  ...known.signer(name),
  sign: async (text) => new Uint8Array(sign(null, text, key)),
});

describe('C9 golang.org/x/mod/sumdb verifies every log that the tests make', () => {
  it(`${STORIES} histories of the simulation`, async () => {
    // The key is the one whose public half Go is given.
    const raw = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32);
    expect(Buffer.from(known.publicKey)).toEqual(Buffer.from(raw));
    for (let story = 1; story <= STORIES; story += 1) {
      const { world, problems } = await simulate(story, story % 4 === 0, atOnce);
      expect(problems, `SEED=${story}`).toEqual([]);
      folders.push(...writeLogs(world.store, path.join(scratch, `story-${story}`), known.publicKey));
    }
    expect(folders.length).toBeGreaterThan(STORIES);
  });

  it(`${CHAOS} runs of chaos on the emulator`, async () => {
    const emulator = await startEmulator();
    try {
      const [store, direct] = [openBlobLogStore(emulator.connection), openBlobLogStore(emulator.direct)];
      await direct.ensure(AbortSignal.timeout(5_000));
      const random = randomOf(1);
      emulator.decide = () => {
        const chance = random();
        return chance < 0.004 ? 'failed' : chance < 0.008 ? 'failed but done' : 'done';
      };
      for (let at = 1; at <= CHAOS; at += 1) {
        const { zone, problems } = await chaos({ store, direct, signers: (name) => [known.signer(name)] }, at);
        expect(problems, `SEED=${at}`).toEqual([]);
        folders.push(...writeLogs(await fetchAll(direct, zone), path.join(scratch, 'chaos'), known.publicKey));
      }
    } finally {
      await emulator.stop();
    }
  });

  it('exports of several years, with hidden and erased records, and checkpoints', async () => {
    const exported = new ExportedLog();
    for (const year of [2026, 2027, 2029]) {
      exported.now = Math.max(exported.now, Date.UTC(year, 5, 1));
      await exported.commit();
      for (const tenant of ['ann', 'bob']) await exported.write(tenant, 300);
      await exported.export('ann', { formats: [] });
    }
    folders.push(...writeLogs(exported.store, path.join(scratch, 'exported'), logKey.publicKey));
    const hidden = new HiddenLog();
    for (let at = 0; at < 3; at += 1) await hidden.write(hidden.event({ subject: 'c1:ann', request: `r${at}` }));
    folders.push(...writeLogs(hidden.store, path.join(scratch, 'hidden'), signingKey.publicKey));
  });

  it('all of them at once', async () => {
    const { stdout } = await run(verifier, folders, { maxBuffer: 16 * 1024 * 1024 }).catch(
      (error: { stdout: string }) => error,
    );
    const lines = stdout.trimEnd().split('\n');
    expect(lines.filter((line) => !line.startsWith('OK '))).toEqual([]);
    expect(lines).toHaveLength(folders.length);
    console.log(`${folders.length} logs: ${lines.at(-1)}`);
  });
});
