import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { convertRepository } from '../../infra/pool/triton/models/generate.ts';
import { startTriton, type Triton } from '../../infra/pool/triton/start.ts';
import { hearPrompts, naturalModels } from '../natural.ts';
import { folder as installation } from './install.ts';

let folder: string;
let triton: Triton;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-natural-'));
  await convertRepository(naturalModels, folder);
  triton = await startTriton({ installed: await installTriton({ folder: installation }), repository: folder });
});
afterAll(async () => {
  await triton?.stop();
  await rm(folder, { recursive: true, force: true });
});

it('U4 Whisper on Triton hears a person with at most one wrong word', async () => {
  const { texts, wrong } = await hearPrompts(triton.url);
  expect(texts).toHaveLength(2);
  expect(wrong, texts.join(' | ')).toBeLessThanOrEqual(1);
});
