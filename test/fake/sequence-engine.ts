import type { Engine, Inference, InferOutcome } from '../../infra/pool/agent/engine/engine.ts';
import { fp32Tensor, int32Tensor } from '../../shared/kserve/tensor.ts';
import { spell, tokens } from './engine.ts';

/** Windows of the test model: those of A4. */
export const shape = { windowSamples: 4_800, hopSamples: 1_600 } as const;
/** One row of scores in 25 ms: four for each hop. */
export const FRAME_SECONDS = 0.025;
const FRAME_SAMPLES = FRAME_SECONDS * 16_000;

export interface SequenceRequest {
  readonly id: string;
  readonly start: boolean;
  readonly end: boolean;
  readonly samples: Float32Array;
  readonly model: string;
  readonly priority: number;
}

const answerOf = (logProbs: Float32Array, frames: number): InferOutcome => ({
  ok: true,
  value: new Map([
    ['LOG_PROBS', fp32Tensor('LOG_PROBS', logProbs, [1, frames, tokens.length])],
    ['FRAMES', int32Tensor('FRAMES', Int32Array.of(frames), [1, 1])],
  ]),
});

interface State {
  sum: number;
  letters: number;
}

/**
 * An engine with sequences in this process; a request without one is a whole recording. What it hears follows from
 * every sample since the start of the sequence, so that a window that is missing, doubled or out of order changes all
 * letters after it. A letter and a blank for every two frames, a word boundary after each fifth letter.
 */
export function createSequenceEngine() {
  const states = new Map<string, State>();
  const requests: SequenceRequest[] = [];
  /** Sequences that were begun and not ended. */
  const open = new Set<string>();
  /** Highest number of concurrent requests of one sequence, without abandoned ones. */
  let most = 0;
  const underWay = new Map<string, number>();
  const double = {
    /** Text of a whole recording, by the model's name at the engine. */
    say: (_model: string): string => 'hello',
    requests,
    open,
    ready: true,
    most: () => most,
    /** Replaces the answer to a request, by its number. */
    answer: undefined as ((number: number, request: SequenceRequest) => InferOutcome | undefined) | undefined,
    /** An answer waits for it. */
    hold: undefined as ((number: number, request: SequenceRequest) => Promise<void> | undefined) | undefined,
    /** Everything that was kept is gone, as after a restart. */
    forget() {
      states.clear();
    },
  };

  function score(state: State, samples: Float32Array, last: boolean) {
    const heard = last ? samples.length : shape.hopSamples;
    const frames = Math.floor(heard / FRAME_SAMPLES);
    const logProbs = new Float32Array(frames * tokens.length).fill(-10);
    for (let frame = 0; frame < frames; frame++) {
      for (const sample of samples.subarray(frame * FRAME_SAMPLES, (frame + 1) * FRAME_SAMPLES)) {
        state.sum = (Math.imul(state.sum, 31) + Math.round(sample * 32_768)) | 0;
      }
      const silent = frame % 2 === 1;
      if (!silent) state.letters++;
      const token = silent ? 0 : state.letters % 6 === 0 ? 1 : 2 + ((state.sum >>> 8) % 26);
      logProbs[frame * tokens.length + token] = -0.01;
    }
    return { logProbs, frames };
  }

  function answer(request: SequenceRequest): InferOutcome {
    const { id, start, end, samples } = request;
    if (start) states.set(id, { sum: 7, letters: 0 });
    const state = states.get(id);
    if (!state) return { ok: false, retryable: false, detail: 'engine status 400', status: 400 };
    const { logProbs, frames } = score(state, samples, end);
    if (end) states.delete(id);
    return answerOf(logProbs, frames);
  }

  async function infer({ inputs, sequence, model, priority, signal }: Inference): Promise<InferOutcome> {
    if (!sequence) {
      const { logProbs, frames } = spell(double.say(model));
      return answerOf(logProbs, frames);
    }
    const audio = inputs.find(({ name }) => name === 'AUDIO')?.bytes ?? new Uint8Array(0);
    // A copy: the caller may use the same memory for what it asks next.
    const samples = new Float32Array(audio.buffer, audio.byteOffset, audio.byteLength / 4).slice();
    const request: SequenceRequest = { ...sequence, id: String(sequence.id), samples, model, priority };
    const number = requests.push(request) - 1;
    if (request.start) open.add(request.id);
    if (request.end) open.delete(request.id);
    const now = (underWay.get(request.id) ?? 0) + 1;
    most = Math.max(most, now);
    underWay.set(request.id, now);
    let left = false;
    const leave = () => {
      if (!left) underWay.set(request.id, (underWay.get(request.id) ?? 1) - 1);
      left = true;
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      await double.hold?.(number, request);
      // Like a server, it stores results computed before the connection broke.
      return double.answer?.(number, request) ?? answer(request);
    } finally {
      leave();
    }
  }

  const engine: Engine = {
    ready: async () => double.ready,
    modelReady: async () => double.ready,
    metadata: async () => ({
      ok: true,
      value: {
        inputs: [
          { name: 'AUDIO', shape: [-1, -1] },
          { name: 'AUDIO_LENGTH', shape: [-1, 1] },
        ],
        outputs: [
          { name: 'LOG_PROBS', shape: [-1, -1, tokens.length] },
          { name: 'FRAMES', shape: [-1, 1] },
        ],
      },
    }),
    queues: async (model) => ({ ok: true, value: [{ model, levels: 0 }] }),
    infer,
    statistics: async () => ({ ok: true, value: { requests: requests.length, computeNs: 0, queueNs: 0 } }),
    loaded: async () => ({ ok: true, value: new Map() }),
    load: async () => ({ ok: true, value: undefined }),
    unload: async () => ({ ok: true, value: undefined }),
    memory: async () => undefined,
    retriesLoads: async () => true,
    close: () => {},
  };
  return Object.assign(double, { engine });
}

export type SequenceEngine = ReturnType<typeof createSequenceEngine>;
