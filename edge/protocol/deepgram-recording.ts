import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok } from '../../shared/result.ts';
import type { Segment } from '../../shared/speech/transcript.ts';
import { type RecordingFacts, type RecordingOptions, renderRecording } from './deepgram-answer.ts';
import { modelUuid } from './deepgram-model.ts';
import { refuseAsDeepgram } from './deepgram-refuse.ts';
import type { Source } from './openai-audio.ts';
import { TRANSCRIPT_WORDS_MAX } from './openai-audio.ts';

/** Facts of a finished transcription. */
export type Facts = Omit<RecordingFacts, 'sha256' | 'model'> & {
  readonly sha256: () => string;
  /** Returns the model that served it. */
  readonly model: () => string;
};

/**
 * Renders the events of a transcription as Deepgram's answer to a recording: one body, at the end. The source gets exactly
 * one end, also after an error.
 */
export async function answerRecording(source: Source, options: RecordingOptions, facts: Facts): Promise<Response> {
  try {
    return await answerEvents(source, options, facts);
  } catch (error) {
    return refuseAsDeepgram(await source.broke(error), facts.request);
  }
}

async function answerEvents(source: Source, options: RecordingOptions, facts: Facts): Promise<Response> {
  const refuseNow = async (refusal: Refusal) => {
    await source.end(no(refusal));
    return refuseAsDeepgram(refusal, facts.request);
  };
  let segments: Segment[] = [];
  let words = 0;
  for (;;) {
    const event = await source.next();
    if (!event.ok) return refuseNow(event.refusal);
    const { value } = event;
    if (value.type === 'ready') {
      // Another agent starts over. The client has nothing of the lost one.
      segments = [];
      words = 0;
    } else if (value.type === 'form') {
      const checked = source.check(value.fields);
      if (!checked.ok) return refuseNow(checked.refusal);
    } else if (value.type === 'segment') {
      segments.push(value);
      words += value.words.length;
      if (words > TRANSCRIPT_WORDS_MAX) return refuseNow(refuse('engine_failed', undefined, 'too many words'));
    } else if (value.type === 'final') {
      // An agent of before mixes channels, which must not look like a transcript of one.
      if (options.multichannel && value.channels === undefined) {
        return refuseNow(refuse('engine_failed', undefined, 'the agent mixes channels'));
      }
      const model = facts.model();
      const known = { ...facts, model, sha256: facts.sha256(), uuid: modelUuid(model, value.revision) };
      const answer = renderRecording({ segments, final: value }, options, known);
      const ended = await source.end(ok(value));
      if (!ended.ok) return refuseAsDeepgram(ended.refusal, facts.request);
      return Response.json(answer, { headers: { 'cache-control': 'no-store', 'dg-request-id': facts.request } });
    }
  }
}
