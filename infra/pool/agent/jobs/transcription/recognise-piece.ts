import { UPLOAD_S } from '../../../../../shared/jobs/limits.ts';
import { isOpen, NO_LANGUAGE, servesLanguage } from '../../../../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import type { Segment } from '../../../../../shared/speech/transcript.ts';
import { createRecognition } from '../../asr/recognise.ts';
import { recogniseRecording } from '../../asr/recognise-recording.ts';
import type { Recogniser } from '../../asr/segment.ts';
import { decodeSound } from '../../audio/decode.ts';
import type { ServedModel } from '../../models/served-model.ts';
import type { Task } from '../task/task.ts';
import type { TotalsLine } from './sheets.ts';

/** Batch work has the last class, whatever the priority of its upload. */
export const CLASS = 'batch';

/** The model of a job, ready to be asked in the language that is wanted. */
export interface Chosen {
  readonly recogniser: Recogniser;
  readonly description: ServedModel['description'];
  readonly language: string;
}

/**
 * Chooses the recogniser. Refuses with `misdirected` when this agent does not serve the model, with
 * `language_unknown` when no model of that name serves the language.
 */
export function chooseModel({ model, opened }: Pick<Task, 'model' | 'opened'>): Result<Chosen> {
  const { model: name, language } = opened.upload;
  if (!model?.recogniser) return no(refuse('misdirected', undefined, 'this agent does not serve the model'));
  const { languages } = model.description;
  const [first] = languages;
  const isSilent = language === NO_LANGUAGE;
  const wanted = isOpen(language) || isSilent ? undefined : language;
  if (first === undefined || !servesLanguage(languages, wanted)) {
    return no(refuse('language_unknown', { model: name, language: String(wanted) }));
  }
  return ok({
    recogniser: model.recogniser,
    description: model.description,
    language: isSilent ? NO_LANGUAGE : (wanted ?? first),
  });
}

export interface Recognised {
  readonly segments: readonly Segment[];
  readonly totals: TotalsLine;
}

/** Recognises one piece, as a short request would be. Times count from its start. */
export async function recognisePiece(
  { shop, opened, signal, deadline }: Task,
  { recogniser, description, language }: Chosen,
  wav: AsyncIterable<Uint8Array>,
): Promise<Result<Recognised>> {
  const segments: Segment[] = [];
  const recognition = createRecognition({
    recogniser,
    dispatcher: shop.dispatcher,
    class: CLASS,
    tenant: opened.upload.tenant,
    deadline,
    signal,
    async onSegment(segment) {
      segments.push(segment);
    },
  });
  const sound = decodeSound(wav, signal, UPLOAD_S);
  const recorded = await recogniseRecording({ sound, recognition, metrics: shop.metrics });
  if (!recorded.ok) return recorded;
  const finished = await recognition.finish();
  if (!finished.ok) return finished;
  shop.metrics.recorded(CLASS, recorded.value);
  const { name: model, revision } = description;
  return ok({ segments, totals: { type: 'heard', v: 1, ...recorded.value, model, revision, language } });
}

/** Reasons that lie in the recording or the request, and are the same on every agent. */
const senders: ReadonlySet<Refusal['reason']> = new Set<Refusal['reason']>([
  'audio_empty',
  'audio_truncated',
  'audio_invalid',
  'audio_unsupported',
  'audio_too_long',
  'language_unknown',
  'envelope_invalid',
  'upload_changed',
  'upload_audio_gone',
]);
export const isSenders = ({ reason }: Refusal): boolean => senders.has(reason);
