import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { buildModel } from '../../../infra/cli/model-build.ts';
import { limits } from '../../../shared/limits.ts';
import { evidence } from '../../../shared/model/evidence.ts';
import { startEmbedded } from '../../contract/engine/embedded.ts';
import { folderForTest } from '../local/folder.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const repository = path.join(root, 'infra/pool/models/repository');
/** The one of the reference models that is loaded fastest: it hears no live streams. */
const MODEL = 'reference-en-fp16';
let engine: Awaited<ReturnType<typeof startEmbedded>>;
beforeAll(async () => {
  engine = await startEmbedded(repository, [MODEL]);
  // What it finds is no matter here, so that it need not look for long.
  Object.assign(limits.measureWindows, { value: 2 });
  Object.assign(limits.measureRequests, { value: 2 });
}, 60_000);
afterAll(async () => engine?.stop(), 30_000);

it('A15 the reference model at the embedded engine: all that the first gate asks for', async () => {
  const folder = folderForTest();
  const [out, list] = [path.join(folder, 'evidence.json'), path.join(folder, 'list.json')];
  const clips = JSON.parse(readFileSync(path.join(root, 'test/clips/clips.json'), 'utf8')) as { file: string }[];
  const some = clips.filter(({ file }) => file === 'number.wav' || file === 'balance.mp3');
  const placed = some.map((clip) => ({ ...clip, file: path.join(root, 'test/clips', clip.file) }));
  writeFileSync(list, JSON.stringify(placed));
  const words = ['measure', repository, MODEL, '--out', out, '--engine', engine.url];
  const found = await buildModel([...words, '--recordings', list, '--sla', '100000', '--against', 'none']);
  expect(found, found.text).toMatchObject({ exit: 0 });
  const [scan, load, latency, quality] = z.array(evidence).parse(JSON.parse(readFileSync(out, 'utf8')));
  expect(scan).toMatchObject({ kind: 'scan', verdict: 'PASS', facts: { networks: 3 } });
  expect(load).toMatchObject({ kind: 'load', verdict: 'PASS', facts: { models: 4, engine: 'auricle-engine 0.1.0' } });
  expect(latency).toMatchObject({ kind: 'latency', windows: [expect.any(Number), expect.any(Number)] });
  // All that they say is understood.
  const speakers = [
    { utterances: 1, words: 10, before: 0, after: 0 },
    { utterances: 1, words: 10, before: 0, after: 0 },
  ];
  expect(quality).toMatchObject({ kind: 'quality', language: 'en', speakers });
});
