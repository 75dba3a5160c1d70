// Double of an agent that synthesises documents: texts are names, and so is audio.

import type { UploadJob } from '../../../shared/jobs/job.ts';
import type { OutcomeFacts } from '../../../shared/jobs/outcome.ts';
import type { OpenedJob } from '../../../shared/jobs/upload-contract.ts';
import { Outage } from '../../fake/storage.ts';

/** Segments of each block, and the name of the text. */
export interface ModelText {
  readonly blocks: readonly number[];
  readonly name: string;
}

/** Content of a synthesised document. */
export interface ModelSpeech {
  readonly texts: readonly string[];
}

type Read = (name: string) => Promise<{ readonly content: Uint8Array } | undefined>;
type Write = (name: string, content: unknown, facts: OutcomeFacts) => Promise<unknown>;

/** Reads the content behind the head of a sealed file. */
export const contentOf = <T>(bytes: Uint8Array): T => {
  const text = new TextDecoder().decode(bytes);
  return JSON.parse(text.startsWith('AURICLE1') ? text.slice(text.indexOf('}') + 1) : text) as T;
};

const firstOf = (names: object, begin: string) => Object.keys(names).find((name) => name.startsWith(begin)) ?? '';

export async function performSpeech(job: UploadJob, opened: OpenedJob, read: Read, write: Write): Promise<void> {
  const get = async <T>(name: string): Promise<T> => {
    const blob = await read(name);
    // Removed meanwhile: the next opening of the job says that it is obsolete.
    if (!blob) throw new Outage('gone');
    return contentOf<T>(blob.content);
  };
  if (job.kind === 'plan') {
    const { blocks, name } = await get<ModelText>('upload');
    const pieces = blocks.reduce((sum, one) => sum + one, 0);
    if (pieces === 0) return void (await write('refusal', '', { refusal: { reason: 'text_empty' } }));
    for (let piece = 0; piece < pieces; piece += 1) await write(`pieces/${piece}`, { text: `${name}.${piece}` }, {});
    return void (await write('plan', { blocks }, { pieces, blocks }));
  }
  if (job.kind === 'work') {
    const text = await get<{ text: string }>(firstOf(opened.read, 'pieces/'));
    return void (await write(firstOf(opened.write, 'results/'), text, { seconds: 1 }));
  }
  await get('plan');
  const texts: string[] = [];
  for (let piece = 0; piece < opened.upload.pieces; piece += 1) {
    const edition = opened.upload.edits?.[piece] ?? 0;
    const { text } = await get<{ text: string }>(`results/${piece}${edition === 0 ? '' : `-${edition}`}`);
    texts.push(text);
  }
  const speech: ModelSpeech = { texts };
  await write(firstOf(opened.write, 'transcript'), speech, { seconds: texts.length });
}
