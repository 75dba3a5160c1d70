import { expect, it } from 'vitest';
import { createDecoder } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import type { Inference } from '../../../infra/pool/agent/engine/engine.ts';
import { openLiveTranscriber } from '../../../infra/pool/model-build/measure/listen-live.ts';
import { fp32Tensor, int32Tensor } from '../../../shared/kserve/tensor.ts';
import { spell, tokens } from '../../fake/engine.ts';

const live = { model: 'm-stream', windowSamples: 300, hopSamples: 100 };
const decoder = createDecoder({ tokens, blank: 0, wordBoundary: 1 });
const utterance = (length: number) => ({ start: 0, speechSeconds: 0, samples: new Float32Array(length) });

/** A transcriber whose engine answers each window with one letter. */
function open(letters: string) {
  const sent: [samples: number, sequence: Inference['sequence']][] = [];
  const engine = {
    close() {},
    async infer({ inputs, sequence }: Inference) {
      sent.push([(inputs[0]?.bytes.length ?? 0) / 4, sequence]);
      const letter = letters[sent.length - 1];
      if (letter === undefined) return { ok: false, retryable: false, detail: 'gone', status: 500 } as const;
      const { logProbs, frames } = spell(letter);
      const value = new Map([
        ['LOG_PROBS', fp32Tensor('LOG_PROBS', logProbs, [1, frames, tokens.length])],
        ['FRAMES', int32Tensor('FRAMES', Int32Array.of(frames), [1, 1])],
      ]);
      return { ok: true, value } as const;
    },
  };
  const transcriber = openLiveTranscriber(engine, live, { model: 'm', frameSeconds: 0.04, decoder });
  return { sent, begun: transcriber.begin(AbortSignal.timeout(60_000)) };
}

it('M6 sends an utterance as a live session does, and joins what is decoded', async () => {
  const { sent, begun } = open('abc');
  await begun.add(utterance(400));
  await begun.add(utterance(300));
  expect(await begun.finish()).toEqual({ ok: true, value: 'ab c' });
  expect(sent.map(([samples]) => samples)).toEqual([300, 300, 300]);
  expect(sent.map(([, sequence]) => [sequence?.start, sequence?.end])).toEqual([
    [true, false],
    [false, true],
    [true, true],
  ]);
});

it('M6 gives no transcript when a window fails', async () => {
  const { begun } = open('a');
  await begun.add(utterance(400));
  await begun.add(utterance(300));
  expect(await begun.finish()).toMatchObject({ ok: false, refusal: { kind: 'engine' } });
});
