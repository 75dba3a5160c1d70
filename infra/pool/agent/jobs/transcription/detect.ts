import { NO_LANGUAGE } from '../../../../../shared/pool/language.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import { listen } from '../../asr/vad/listen.ts';
import { Opening } from '../../asr/vad/opening.ts';
import { decodeSound } from '../../audio/decode.ts';
import { detectSpeech } from '../../models/detect-speech.ts';
import { failed, readUpload, type Task, type Verdict, writeOutcomeFile } from '../task/task.ts';
import { longest } from './plan.ts';
import { CLASS, isSenders } from './recognise-piece.ts';

/** Detects the language of an upload from its first speech, and reads no further. */
export async function detectUpload(task: Task): Promise<Verdict> {
  const upload = readUpload(task);
  if (!upload.ok) return failed(upload.refusal);
  const opening = await readOpening(task, upload.value.bytes);
  const refusal = upload.value.wrong() ?? (opening.ok ? undefined : opening.refusal);
  if (refusal) return isSenders(refusal) ? { type: 'refused', refusal } : failed(refusal);
  const found = opening.ok && opening.value.length > 0 ? await detect(task, opening.value) : ok(SILENT);
  if (!found.ok) {
    return found.refusal.reason === 'language_uncertain' ? { type: 'refused', ...found } : failed(found.refusal);
  }
  const written = await writeOutcomeFile(task, 'language', [], found.value);
  return written.ok ? { type: 'done' } : failed(written.refusal);
}

const SILENT = { language: NO_LANGUAGE };

/** Returns the first speech, which is empty where the whole recording has none. */
async function readOpening(task: Task, bytes: AsyncIterable<Uint8Array>): Promise<Result<Float32Array>> {
  const opening = new Opening();
  const sound = decodeSound(bytes, task.signal, longest(task.opened.upload));
  for await (const event of listen(sound, false, false, opening)) {
    if (!event.ok) return event;
    if (event.value.type === 'opening') return ok(opening.samples());
  }
  return no(refuse('internal', undefined, 'recording without an end'));
}

const detect = ({ shop: context, opened, signal, deadline }: Task, speech: Float32Array) => {
  const { tenant, languages } = opened.upload;
  return detectSpeech(speech, { context, ticket: { class: CLASS, tenant }, signal, deadline, languages });
};
