import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { folder as installation } from './install.ts';
import { clip, transcribeWith } from './pair.ts';

const sources = path.resolve(import.meta.dirname, '../..');
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-arm64-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('M7 the embedded target', () => {
  it('agent and engine on arm64 transcribe a recording', async () => {
    const repository = path.join(sources, 'infra/pool/models/repository');
    const env = { AURICLE_ARM64: installation };
    const command = path.join(import.meta.dirname, 'arm64-node.sh');
    expect(await transcribeWith({ command, args: [], root: '', sources, repository, folder, env })).toBe(clip.text);
  });
});
