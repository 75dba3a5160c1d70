// Transcription of recordings as live streams: window by window, by the streaming half of a model.
import { no, ok, type Result } from '../../../../shared/result.ts';
import { joinWords } from '../../../../shared/speech/words.ts';
import { readScores } from '../../agent/asr/recognise.ts';
import type { CtcRecogniser } from '../../agent/asr/segment.ts';
import type { Utterance } from '../../agent/asr/vad/cut.ts';
import type { Engine } from '../../agent/engine/engine.ts';
import type { LiveModel } from '../../agent/models/live-model.ts';
import { createSequenceIds } from '../../agent/stream/sequence-ids.ts';
import { problem } from '../problem.ts';
import { audioInference } from './audio-inference.ts';
import type { Transcriber } from './listen.ts';

/** Windows of an utterance as a live session sends them: each but the last has sound behind it. */
function* windowsOf(samples: Float32Array, { windowSamples, hopSamples }: LiveModel) {
  let from = 0;
  for (; samples.length > from + windowSamples; from += hopSamples)
    yield { samples: samples.subarray(from, from + windowSamples), start: from === 0, end: false };
  yield { samples: samples.subarray(Math.min(from, samples.length)), start: from === 0, end: true };
}

/** Opens a transcriber that decodes what the streaming ensemble `live` answers. */
export function openLiveTranscriber(
  engine: Pick<Engine, 'infer' | 'close'>,
  live: LiveModel,
  { decoder }: CtcRecogniser,
): Transcriber {
  const newId = createSequenceIds(Math.random());

  async function hear({ samples }: Utterance): Promise<Result<string, string>> {
    const id = newId();
    const decoding = decoder.begin();
    for (const { samples: window, start, end } of windowsOf(samples, live)) {
      const answered = await engine.infer(audioInference(live.model, window, { id, start, end }));
      if (!answered.ok) return no(answered.detail);
      const scores = readScores(answered.value, decoder.width);
      if (!scores.ok) return no(scores.refusal.detail ?? scores.refusal.reason);
      decoding.push(scores.value.logProbs, scores.value.frames);
    }
    return ok(decoding.finish().text);
  }

  return {
    begin() {
      const texts: string[] = [];
      let failed: string | undefined;
      return {
        async add(utterance) {
          const heard = failed === undefined ? await hear(utterance) : no(failed);
          if (heard.ok) texts.push(heard.value);
          else failed = heard.refusal;
          return ok(undefined);
        },
        finish: async () =>
          failed === undefined ? ok(joinWords(texts)) : problem('engine', `${live.model}: ${failed}`),
      };
    },
    close: engine.close,
  };
}
