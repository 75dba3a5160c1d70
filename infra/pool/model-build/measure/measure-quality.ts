// Evidence "quality": word errors of two revisions on the same recordings, by speaker.

import { wordsOf } from '../../../../shared/registry/compare-answers.ts';
import type { Evidence } from '../../../../shared/registry/evidence.ts';
import type { SpeakerErrors } from '../../../../shared/registry/quality.ts';
import { countWordErrors } from '../../../../shared/registry/word-errors.ts';
import { ok } from '../../../../shared/result.ts';
import type { BuildResult } from '../problem.ts';
import { MEASURE_CONCURRENT_MAX } from './limits.ts';
import type { Recording, RecordingList } from './recordings.ts';

export type Quality = Extract<Evidence, { kind: 'quality' }>;

/** Transcripts of a recording; `before` by the revision of comparison. */
export interface Understood {
  readonly after: string;
  readonly before: string;
}

type Transcribe = (recording: Recording) => Promise<BuildResult<Understood>>;

interface QualityRequest {
  readonly list: RecordingList;
  readonly language: string;
  readonly tool: string;
}

export async function measureQuality(
  { list, language, tool }: QualityRequest,
  transcribe: Transcribe,
): Promise<BuildResult<Quality>> {
  const speakers = new Map<string, SpeakerErrors>();
  const left = list.recordings[Symbol.iterator]();
  let failed: BuildResult<never> | undefined;
  const listen = async () => {
    for (const recording of left) {
      const transcript = await transcribe(recording);
      if (!transcript.ok) failed ??= transcript;
      if (failed || !transcript.ok) return;
      const { speaker, text } = recording;
      speakers.set(speaker, addErrors(speakers.get(speaker), text, transcript.value));
    }
  };
  await Promise.all(Array.from({ length: MEASURE_CONCURRENT_MAX }, listen));
  if (failed) return failed;
  const { digest } = list;
  // In the order of the list, which determines the resampling of speakers.
  const order = [...new Set(list.recordings.map(({ speaker }) => speaker))];
  const counted = order.map((name) => speakers.get(name) as SpeakerErrors);
  return ok({ kind: 'quality', tool, language, set: digest, seed: seedOf(digest), speakers: counted });
}

/** Derives the seed from the recordings, so that no person chooses it. */
const seedOf = (digest: string): number => Number.parseInt(digest.replace('sha256:', '').slice(0, 8), 16);

const nothing: SpeakerErrors = { utterances: 0, words: 0, before: 0, after: 0 };

function addErrors(sum: SpeakerErrors = nothing, text: string, { after, before }: Understood): SpeakerErrors {
  const reference = wordsOf(text);
  const errors = (transcript: string) => countWordErrors(reference, wordsOf(transcript));
  return {
    utterances: sum.utterances + 1,
    words: sum.words + reference.length,
    before: sum.before + errors(before),
    after: sum.after + errors(after),
  };
}
