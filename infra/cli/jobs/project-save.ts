// Writes the audio and the manifest of each document: `1.wav` and `1.json`, and so on.
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { manifest } from '../../../shared/jobs/project-manifest.ts';
import { type Answer, refused } from '../answer.ts';
import type { ProjectState } from './project-state.ts';

export interface ProjectSource {
  /** Address of the project. */
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly fetch: typeof fetch;
}

export async function saveDocuments(
  { documents }: ProjectState,
  folder: string,
  { url, headers, fetch: send }: ProjectSource,
): Promise<{ readonly files: string[] } | Answer> {
  await mkdir(folder, { recursive: true });
  const files: string[] = [];
  for (const { index } of documents) {
    const at = `${url}/documents/${index}`;
    const about = await send(`${at}/manifest`, { headers });
    if (!about.ok) return refused(about);
    const described = manifest.parse(await about.json());
    const audio = await send(`${at}/audio`, { headers });
    if (!audio.ok || !audio.body) return refused(audio);
    const name = path.join(folder, `${index + 1}`);
    const digest = await save(audio.body, `${name}.wav`);
    if (digest !== described.audio.digest) {
      await rm(`${name}.wav`, { force: true });
      const text = `${name}.wav arrived damaged; run the command again`;
      return { exit: 1, text, value: { error: { message: text } } };
    }
    await writeFile(`${name}.json`, `${JSON.stringify(described, undefined, 2)}\n`);
    files.push(`${name}.wav`, `${name}.json`);
  }
  return { files };
}

/** Writes atomically: the file gets its name when it is complete. */
async function save(body: ReadableStream<Uint8Array>, file: string): Promise<string> {
  const hash = createHash('sha256');
  const part = `${file}.part`;
  const watched = Readable.from(
    (async function* () {
      for await (const chunk of body) {
        hash.update(chunk);
        yield chunk;
      }
    })(),
  );
  await pipeline(watched, createWriteStream(part));
  await rename(part, file);
  return `sha256:${hash.digest('hex')}`;
}
