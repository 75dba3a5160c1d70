import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { buildModel } from '../../../infra/cli/models/build.ts';
import { evidence } from '../../../shared/registry/evidence.ts';
import { startEmbedded } from '../../contract/engine/embedded.ts';
import { folderForTest } from '../local/folder.ts';

// The result does not matter here, so few windows suffice.
vi.mock('../../../infra/pool/model-build/measure/limits.ts', async (original) => ({
  ...(await original<object>()),
  MEASURE_WINDOWS_MAX: 2,
  MEASURE_WINDOW_REQUESTS: 2,
}));

const root = path.resolve(import.meta.dirname, '../../..');
const repository = path.join(root, 'infra/pool/models/repository');
let engine: Awaited<ReturnType<typeof startEmbedded>>;
beforeAll(async () => {
  engine = await startEmbedded(repository, ['reference-en', 'reference-en-fp16']);
}, 60_000);
afterAll(async () => {
  await engine?.stop();
}, 30_000);

it('A15 the README example: the reference model at the embedded engine', async () => {
  const out = path.join(folderForTest(), 'evidence.json');
  const readme = readFileSync(path.join(root, 'infra/pool/model-build/README.md'), 'utf8');
  const [, line = '', printed = ''] =
    /```\nnpx auricle model (measure [^\n]*)\n```\n\n```text\n([^`]*)```/.exec(readme) ?? [];
  const own = (word: string) =>
    word.replace('http://127.0.0.1:8000', engine.url).replace(/^(infra|test)\//, `${root}/$1/`);
  const words = line.split(' ').map((word) => (word === 'evidence.json' ? out : own(word)));
  const found = await buildModel(words);
  expect(found, found.text).toMatchObject({ exit: 0 });
  expect(found.text.replace(out, 'evidence.json')).toMatch(patternOf(printed.trimEnd()));

  const [scan, load, latency, quality] = z.array(evidence).parse(JSON.parse(readFileSync(out, 'utf8')));
  expect(scan).toMatchObject({ kind: 'scan', verdict: 'PASS', facts: { networks: 3 } });
  expect(load).toMatchObject({ kind: 'load', verdict: 'PASS', facts: { models: 4, engine: 'auricle-engine 0.1.0' } });
  expect(latency).toMatchObject({ kind: 'latency', windows: [expect.any(Number), expect.any(Number)] });
  // Both recognise every recording.
  const understood = { before: 0, after: 0 };
  expect(quality).toMatchObject({
    kind: 'quality',
    language: 'en',
    speakers: Array.from({ length: 6 }, () => understood),
  });
});

/** Pattern of the printed text, with `…` for anything. */
const patternOf = (text: string): RegExp =>
  new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')}$`);
