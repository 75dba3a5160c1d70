import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { run } from '../../../infra/pool/triton/run.ts';

/** Debian packages of the prompts (8 kHz, one speaker, CC-BY-SA 3.0) and of their transcripts. */
const PACKAGES = ['asterisk-core-sounds-en', 'asterisk-core-sounds-en-wav'];
const SOUNDS = 'usr/share/asterisk/sounds/en_US_f_Allison';
const TEXTS = 'usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz';

const DIGITS = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];

/** Words as they are counted: letters in lower case, digits by name. */
export const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .replace(/\d/g, (digit) => ` ${DIGITS[Number(digit)]} `)
    .replace(/[^a-z' ]/g, ' ')
    .split(' ')
    .filter(Boolean);

export interface Prompt {
  readonly file: string;
  readonly words: readonly string[];
  readonly seconds: number;
}

async function unpack(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of PACKAGES) {
    const download = () => run('bash', ['-c', `cd "${folder}" && apt-get download -q ${name}`]);
    let got = await download();
    // A fresh machine has no list of packages.
    if (!got.ok && (await run('apt-get', ['update', '-q'])).ok) got = await download();
    if (!got.ok) throw new Error(`apt-get download ${name}: ${got.lastLine}`);
  }
  for (const name of (await readdir(folder)).filter((one) => one.endsWith('.deb')))
    await run('dpkg', ['-x', path.join(folder, name), path.join(folder, 'files')]);
}

/** First `count` prompts of 2 to 29 s and at least five words whose text has no stage directions. */
export async function readPrompts(folder: string, count: number): Promise<Prompt[]> {
  const files = path.join(folder, 'files');
  if (![TEXTS, SOUNDS].every((one) => existsSync(path.join(files, one)))) await unpack(folder);
  const prompts: Prompt[] = [];
  for (const line of gunzipSync(await readFile(path.join(files, TEXTS)))
    .toString()
    .split('\n')) {
    const [, key, text = ''] = /^([^;:][^:]*):(.*)$/.exec(line) ?? [];
    const file = path.join(files, SOUNDS, `${key?.trim()}.wav`);
    const words = wordsOf(text);
    if (text.includes('[') || words.length < 5 || !existsSync(file)) continue;
    const seconds = ((await stat(file)).size - 44) / 16_000;
    if (seconds >= 2 && seconds <= 29) prompts.push({ file, words, seconds });
    if (prompts.length === count) break;
  }
  return prompts;
}
