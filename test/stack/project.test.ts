// Text projects through a whole stack, with the real voice; the reference recogniser transcribes the result.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { BlobServiceClient } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { developer } from '../../infra/local/identity/tokens.ts';
import { storageConnection } from '../../infra/local/plan.ts';
import { manifest } from '../../shared/jobs/project-manifest.ts';
import { readHead } from '../../shared/seal/envelope.ts';
import { runAuricle } from './auricle.ts';
import { join } from './join.ts';
import type { Shared } from './running.ts';

const PROJECT_MS = 60_000;

/** Tenant of these files; other tests use the same stack. */
const TENANT = 'publisher';
let running: Shared;
let token: string;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-project-'));
  process.env.XDG_STATE_HOME = folder;
  running = await join();
  token = await running.mint({ ...developer, tenant: TENANT }, 3_600);
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const auricle = (...given: string[]) => runAuricle(running, token, given);

const write = (name: string, content: unknown): string => {
  const file = path.join(folder, name);
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
};

/** Letters only: sentence boundaries of the recogniser do not matter. */
const bare = (text: string) => text.toLowerCase().replace(/[^a-z]/g, '');

/** Returns the share of `words` that occur in `text`, in order. */
function heardInOrder(text: string, words: readonly string[]): number {
  let at = 0;
  let heard = 0;
  for (const word of words) {
    const found = bare(text).indexOf(bare(word), at);
    if (found < 0) continue;
    heard += 1;
    at = found + bare(word).length;
  }
  return heard / words.length;
}

const hear = async (wav: string) => (await auricle('transcribe', wav)).out;

const chapter = 'Good morning. The weather is fine today.\n\nWe walk to the river. Nobody is there!\n';

describe('T3 T4 auricle project', () => {
  it(
    'speaks a text in order, respeaks one edited segment, and deletes everything',
    async () => {
      const out = path.join(folder, 'sound');
      const made = await auricle('project', write('chapter.txt', chapter), '--out', out, '--json');
      expect(made.code, made.err).toBe(0);
      const project = JSON.parse(made.out);
      expect(project).toMatchObject({ status: 'done', documents: [{ segments: { total: 4, done: 4 } }] });
      // Progress is reported by block.
      expect(made.err).toMatch(/\(2\/2 blocks\)/);
      const about = manifest.parse(JSON.parse(readFileSync(path.join(out, '1.json'), 'utf8')));
      const texts = about.blocks.map(({ segments }) => segments.map(({ text }) => text));
      expect(texts).toEqual([
        ['Good morning.', 'The weather is fine today.'],
        ['We walk to the river.', 'Nobody is there!'],
      ]);
      expect(heardInOrder(await hear(path.join(out, '1.wav')), chapter.split(/\s+/).filter(Boolean))).toBeGreaterThan(
        0.8,
      );

      const edited = await auricle(
        'project',
        'edit',
        project.id,
        '0',
        '1',
        'The water is cold.',
        '--out',
        out,
        '--json',
      );
      expect(edited.code, edited.err).toBe(0);
      const after = manifest.parse(JSON.parse(readFileSync(path.join(out, '1.json'), 'utf8')));
      const [before, now] = [about, after].map((one) => one.blocks.flatMap(({ segments }) => segments));
      const changed = before?.map(({ digest }, at) => digest !== now?.[at]?.digest);
      expect(changed).toEqual([false, true, false, false]);
      expect(bare(await hear(path.join(out, '1.wav')))).toContain('wateriscold');

      await expectSealed('river');
      const deleted = await auricle('project', 'delete', project.id);
      expect([deleted.code, deleted.out]).toMatchObject([0, expect.stringContaining('cancelled')]);
      expect(await stored()).toEqual(new Map());
      const gone = await auricle('project', 'save', project.id, '--out', out);
      expect(gone.code).toBe(1);
    },
    2 * PROJECT_MS,
  );

  it(
    'speaks documents of blocks in another zone, unsealed where the token allows',
    async () => {
      const documents = [
        { title: 'One', blocks: [{ segments: ['Hello there.', 'How are you?'] }, { text: 'I am fine. Thank you.' }] },
        { title: 'Two', text: 'The end.' },
      ];
      const file = write('book.json', { documents, gaps: { segment_ms: 0, block_ms: 1_000 } });
      const { code, out, err } = await auricle('project', file, '--plain', '--zone', 'us', '--wait', '--json');
      expect(code, err).toBe(0);
      const value = JSON.parse(out);
      expect(value).toMatchObject({ zone: 'us', documents: [{ title: 'One' }, { title: 'Two' }] });
      expect(value.documents[0].blocks).toEqual([
        { total: 2, done: 2 },
        { total: 2, done: 2 },
      ]);
      const token = await running.mint({ scope: 'projects' });
      const refused = await auricle('project', file, '--plain', '--token', token);
      expect([refused.code, refused.err]).toMatchObject([1, expect.stringContaining('sealing_required')]);
    },
    PROJECT_MS,
  );

  it(
    'says why a text cannot be spoken',
    async () => {
      const empty = await auricle('project', write('empty.txt', ' \n\n'), '--plain');
      expect([empty.code, empty.err]).toMatchObject([1, expect.stringContaining('text_empty')]);
      const voice = await auricle('project', write('short.txt', 'Hello.'), '--voice', 'nobody', '--wait');
      expect([voice.code, voice.err]).toMatchObject([1, expect.stringContaining('voice_unknown')]);
      const model = await auricle('project', write('short.txt', 'Hello.'), '--model', 'reference-en');
      expect([model.code, model.err]).toMatchObject([1, expect.stringContaining('model_unfit')]);
    },
    PROJECT_MS,
  );
});

async function stored(): Promise<Map<string, Buffer>> {
  const account = BlobServiceClient.fromConnectionString(storageConnection(running.stack.ports));
  const all = new Map<string, Buffer>();
  for (const container of ['uploads', 'outcomes']) {
    const client = account.getContainerClient(container);
    for await (const { name } of client.listBlobsFlat({ prefix: `${TENANT}/` }))
      all.set(name, await client.getBlobClient(name).downloadToBuffer());
  }
  return all;
}

/** A21: stored blobs are sealed, and neither they nor logs have a word in the clear. */
async function expectSealed(word: string): Promise<void> {
  const all = await stored();
  expect(all.size).toBeGreaterThan(0);
  for (const [name, bytes] of all) {
    expect([name, readHead(bytes.subarray(0, 4_096)).ok]).toEqual([name, true]);
    expect(bytes.includes(word), name).toBe(false);
  }
  expect(running.logs()).not.toContain(word);
}
