import type { ModelDescription } from '../../../../shared/pool/description.ts';
import type { Detector } from '../asr/detect-language.ts';
import type { Recogniser } from '../asr/segment.ts';
import type { Speaker } from '../tts/speaker.ts';
import type { LiveModel } from './live-model.ts';
import type { RecogniserSource } from './recogniser.ts';
export interface ServedModel {
  readonly description: ModelDescription;
  /** Its name at the engine where that is another. */
  readonly engineModel?: string;
  /** Absent when the model serves tensors only. */
  readonly recogniser?: Recogniser;
  /** Files that the recogniser was made of, for stream workers; absent in tests that make their own. */
  readonly source?: RecogniserSource;
  /** Live half; absent when the model takes no live streams. `description.live` says whether the engine has loaded it. */
  readonly live?: LiveModel;
  /** Speech synthesis; absent when the model is no voice. */
  readonly speaker?: Speaker;
  /** Whether its files are still those that its revision names; absent when it was made of none. */
  readonly unchanged?: () => Promise<boolean>;
}

/** Returns the name of a model at the engine. */
export const engineModelOf = ({ description, engineModel }: ServedModel): string => engineModel ?? description.name;

/** Returns a model that detects languages, as the engine knows it. */
export const detectorOf = (served: ServedModel): Detector => ({
  model: engineModelOf(served),
  languages: served.description.languages,
});

/** A model that stays loaded until it is released. */
export interface LeasedModel {
  readonly model: ServedModel;
  readonly release: () => void;
}
