import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { signCheckpoint } from '../../shared/audit/checkpoint.ts';
import { formatVerifierKey, openNote, openSigningKey, openVerifier, readVerifierKey } from '../../shared/audit/note.ts';
import { RightEdge } from '../../shared/audit/right-edge.ts';
import { verifier } from './install.ts';

const run = promisify(execFile);
const scratch = mkdtempSync(path.join(os.tmpdir(), 'auricle-go-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const ORIGIN = 'audit.example/eu/2026';
const { publicKey, signer } = await openSigningKey(new Uint8Array(32).fill(5));

function write(folder: string, name: string, bytes: Uint8Array | string): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, bytes);
}

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

  it('and finds one flipped bit in any file of one', async () => {
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
    expect(opened).toEqual({ text, signers: ['go.example/log'] });
  });
});
