// `npm start -- --models natural`: Whisper through the loaders of the agents, the sealed path and the edge.
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Stack, startStack } from '../../infra/local/stack.ts';
import { WHISPER_MODEL } from '../../infra/pool/model-build/whisper/install-whisper.ts';
import { countWordErrors } from '../../shared/registry/word-errors.ts';
import { wordsOf } from '../bench/natural/prompts.ts';
import { naturalModels, promptsOf } from '../natural.ts';

let state: string;
let stack: Stack;
beforeAll(async () => {
  state = await mkdtemp(path.join(tmpdir(), 'auricle-natural-stack-'));
  // In place of the download, which `setup` has made.
  await cp(naturalModels, path.join(state, 'models/natural'), { recursive: true });
  stack = await startStack({ port: 0, state, models: 'natural' });
});
afterAll(async () => {
  await stack?.stop();
  await rm(state, { recursive: true, force: true });
});

it('U4 a stack with --models natural serves Whisper', async () => {
  const headers = { authorization: `Bearer ${stack.token}` };
  const listed = await fetch(`${stack.url}/v1/models/${WHISPER_MODEL}`, { headers });
  expect(await listed.json()).toMatchObject({ id: WHISPER_MODEL, hears: 'people' });
  const [prompt] = await promptsOf(1);
  if (!prompt) throw new Error('no prompt');
  const body = new FormData();
  body.set('model', WHISPER_MODEL);
  body.set('file', new Blob([await readFile(prompt.file)]), 'prompt.wav');
  const answer = await fetch(`${stack.url}/v1/audio/transcriptions`, { method: 'POST', headers, body });
  expect(answer.status).toBe(200);
  const { text } = (await answer.json()) as { text: string };
  expect(countWordErrors(prompt.words, wordsOf(text)), text).toBeLessThanOrEqual(1);
});
