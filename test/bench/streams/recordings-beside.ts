// Recordings at the engine beside live streams: callers that send one recording after the other.

import { modelTensors } from '../../../infra/pool/agent/asr/recognise.ts';
import { createKserveEngine } from '../../../infra/pool/agent/engine/kserve.ts';
import { ENGINE_MS } from '../../../infra/pool/agent/settings/limits.ts';
import { fp32Tensor, int32Tensor } from '../../../shared/kserve/tensor.ts';
import { FORMAT } from './traffic.ts';

/** Utterances of one recording at the engine at once, as an agent sends them with one slot fewer than its four. */
const CALLERS = 3;
/** Seconds of the utterances: of different lengths, as speech is cut. */
const LENGTHS = [1, 2, 3, 5];

export interface RecordingLoad {
  readonly answered: number;
  readonly failed: number;
  /** Seconds of sound that were answered. */
  readonly seconds: number;
}

/** Starts the callers. The returned function ends them and says what they got. */
export function recordBeside(url: string, model: string, speech: Int16Array): () => Promise<RecordingLoad> {
  const engine = createKserveEngine(url, CALLERS);
  const stop = new AbortController();
  const count = { answered: 0, failed: 0, seconds: 0 };
  const call = async (first: number) => {
    for (let at = first; !stop.signal.aborted; at++) {
      const samples = (LENGTHS[at % LENGTHS.length] ?? 1) * FORMAT.rate;
      const audio = Float32Array.from({ length: samples }, (_, i) => (speech[i % speech.length] ?? 0) / 0x8000);
      const answer = await engine.infer({
        model,
        inputs: [fp32Tensor('AUDIO', audio, [1, samples]), int32Tensor('AUDIO_LENGTH', Int32Array.of(samples), [1, 1])],
        outputs: modelTensors.outputs,
        priority: 3,
        timeoutMicros: ENGINE_MS * 1_000,
        signal: AbortSignal.timeout(ENGINE_MS),
      });
      if (answer.ok) count.seconds += samples / FORMAT.rate;
      count[answer.ok ? 'answered' : 'failed'] += 1;
    }
  };
  const calls = Array.from({ length: CALLERS }, (_, caller) => call(caller));
  return async () => {
    stop.abort();
    await Promise.all(calls);
    engine.close();
    return count;
  };
}
