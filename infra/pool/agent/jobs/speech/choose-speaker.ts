import { isOpen, servesLanguage } from '../../../../../shared/pool/language.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import type { ServedModel } from '../../models/served-model.ts';
import type { Speaker } from '../../tts/speaker.ts';
import type { Task } from '../task/task.ts';

/**
 * Chooses the speaker. Refuses with `misdirected` when this agent has no such voice, with `language_unknown`
 * when the voice does not speak the language.
 */
export function chooseSpeaker({
  model,
  opened,
}: Pick<Task, 'model' | 'opened'>): Result<{ readonly speaker: Speaker; readonly model: ServedModel }> {
  const { model: name, language } = opened.upload;
  if (!model?.speaker) return no(refuse('misdirected', undefined, 'this agent does not serve the voice'));
  const wanted = isOpen(language) ? undefined : language;
  if (!servesLanguage(model.description.languages, wanted))
    return no(refuse('language_unknown', { model: name, language: String(wanted) }));
  return ok({ speaker: model.speaker, model });
}
