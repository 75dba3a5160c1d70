// A log of a million entries on disk, and how long it takes to verify: with our reader, and with Go's packages.
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { RightEdge } from '../../../functions/audit/log/right-edge.ts';
import { signCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { encodeLeaf, type Leaf } from '../../../shared/audit/leaf.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { formatVerifierKey } from '../../../shared/audit/note-key.ts';
import { buildVerifier, verifier } from '../../go/install.ts';
import { type Cost, costIn, tellingCost } from './tell-cost.ts';

const run = promisify(execFile);
const ORIGIN = 'bench/eu/2026';
/** Entries that are held in memory while the log is made. */
const AT_ONCE = 65_536;

/** Commitments of a leaf, of which there are some in each. */
const sd = Object.fromEntries(
  ['subject', 'audioSeconds', 'bytes', 'milliseconds'].map((name) => [name, 'A'.repeat(43)]),
);

const leafOf = (at: number): Leaf => ({
  ...{
    v: 1,
    id: `017f22e2-79b0-7cc3-98c4-${at.toString(16).padStart(12, '0')}`,
    type: 'inference.complete',
    by: 'edge',
  },
  ...{ p: 'gate/t1/eu', ep: '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11', pseq: at + 1, tn: 't1', tseq: at + 1 },
  ...{ req: `req_${at.toString(36).padStart(20, '0')}`, t: { origin: at, edge: at, seq: at }, sd },
  ...{ action: 'transcribe', status: 200, class: 'interactive', model: 'reference-en', language: 'en' },
  ...{ revision: `sha256:${'0'.repeat(64)}`, agent: 'aks-westeurope-0' },
});

/** Makes a log in a folder as its readers would fetch it; returns how long its entries are. */
export async function makeLog(folder: string, count: number): Promise<number> {
  const { publicKey, signer } = await openSigningKey(new Uint8Array(32).fill(9));
  const write = (name: string, bytes: Uint8Array | string) => {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, bytes);
  };
  let edge = new RightEdge();
  let bytes = 0;
  for (let at = 0; at < count; at += 1) {
    const entry = encodeLeaf(leafOf(at));
    bytes += entry.length;
    edge.append(entry);
    if (edge.size % AT_ONCE !== 0) continue;
    for (const file of edge.files()) if (!file.partial) write(file.path, file.bytes);
    edge = new RightEdge(edge.facts);
  }
  for (const file of edge.files()) write(file.path, file.bytes);
  write('vkey', formatVerifierKey(ORIGIN, publicKey));
  write('checkpoint', await signCheckpoint({ origin: ORIGIN, size: count, root: edge.root() }, signer(ORIGIN)));
  return bytes;
}

/** Seconds without the start of the process. */
export async function verifyHere(folder: string): Promise<Cost> {
  const script = path.join(import.meta.dirname, 'verify-process.ts');
  const { stdout, stderr } = await run(process.execPath, [...tellingCost, script, folder]);
  return { ...costIn(stderr), seconds: Number(stdout) };
}

/** Go's time in seconds; `undefined` where there is no Go and none can be had. */
export async function verifyInGo(folder: string): Promise<number | undefined> {
  try {
    await buildVerifier();
  } catch (error) {
    console.warn(`without Go's figure: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
  const began = performance.now();
  const { stdout } = await run(verifier, [folder]);
  if (!stdout.startsWith('OK')) throw new Error(stdout);
  return (performance.now() - began) / 1_000;
}
