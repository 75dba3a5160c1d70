import { createTextReader } from '../../infra/pool/agent/asr/text/text-reader.ts';
import type { Engine } from '../../infra/pool/agent/engine/engine.ts';
import type { ServedModel } from '../../infra/pool/agent/models/served-model.ts';
import type { Tensor } from '../../shared/kserve/tensor.ts';
import { fp32Tensor } from '../../shared/kserve/tensor.ts';
import { createSequenceEngine } from './sequence-engine.ts';

/** Length of a word of the fake text model, seconds. */
export const WORD_SECONDS = 0.4;
export const WORDS = 'alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima'.split(' ');

export function textTensor(name: string, text: string): Tensor {
  const bytes = new TextEncoder().encode(text);
  const framed = new Uint8Array(4 + bytes.length);
  new DataView(framed.buffer).setUint32(0, bytes.length, true);
  framed.set(bytes, 4);
  return { name, datatype: 'BYTES', shape: [1, 1], bytes: framed };
}

/** A model that takes whole recordings: a word for each 0.4 s, and half a word for a rest. */
export const textModel = (name: string, hopSeconds: number): ServedModel => ({
  description: {
    ...{ name, task: 'transcribe', languages: ['en'], precision: 'fp32', stage: 'full', loaded: 0 },
    revision: `sha256:${'2'.repeat(64)}`,
  },
  recogniser: { model: name, text: createTextReader(['TEXT', 'WORD_TIMES']), takesLength: false, takesPrompt: true },
  live: { model: name, windowSamples: 0, hopSamples: hopSeconds * 16_000 },
});

/** The engine of `textModel`. `lengths`: seconds of sound of each request; `prompts`: their `PROMPT`. */
export function createTextEngine(): { engine: Engine; lengths: number[]; prompts: string[] } {
  const lengths: number[] = [];
  const prompts: string[] = [];
  const { engine } = createSequenceEngine();
  return {
    lengths,
    prompts,
    engine: {
      ...engine,
      metadata: async () => ({
        ok: true,
        value: {
          inputs: [{ name: 'AUDIO', shape: [-1, -1] }],
          outputs: ['TEXT', 'WORD_TIMES'].map((name) => ({ name, shape: [-1, -1] })),
        },
      }),
      async infer({ inputs: [audio, prompt], sequence }) {
        if (sequence) return { ok: false, retryable: false, detail: 'no sequences', status: 501 };
        const seconds = (audio as Tensor).bytes.length / 4 / 16_000;
        lengths.push(seconds);
        prompts.push(new TextDecoder().decode(prompt?.bytes.subarray(4)));
        const whole = Math.floor(seconds / WORD_SECONDS);
        const words = [...WORDS.slice(0, whole), (WORDS[whole] as string).slice(0, 2)];
        const times = Float32Array.from(words.flatMap((_, i) => [i * WORD_SECONDS, (i + 1) * WORD_SECONDS]));
        const value = [textTensor('TEXT', words.join(' ')), fp32Tensor('WORD_TIMES', times, [1, words.length, 2])];
        return { ok: true, value: new Map(value.map((tensor) => [tensor.name, tensor])) };
      },
    },
  };
}
