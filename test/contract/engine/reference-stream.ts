import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createKserveEngine } from '../../../infra/pool/agent/engine/kserve.ts';
import { findStreamProblem } from '../../../infra/pool/model-build/measure/check-streams.ts';
import { MEASURE_STREAMS } from '../../../infra/pool/model-build/measure/limits.ts';
import { readInt32 } from '../../../shared/kserve/tensor.ts';
import { askInfer, batchCounts, floats, infer } from './client.ts';
import type { Started } from './implementation.ts';
import { sound, tensorsOf } from './sound.ts';

/** Models that these tests require. */
export const streamModels = ['reference-en', 'reference-en-stream'];

const WINDOW = 5360;
const HOP = 5120;
/** Letters and blank. */
const WIDTH = 29;
/** Tolerance of probabilities: the last digits depend on the processor's order of additions. */
const CLOSE = 1e-4;

interface Scores {
  readonly frames: number;
  /** Probabilities: logarithms of tiny values say nothing. */
  readonly values: number[];
}

function distance(a: Scores, b: Scores): number {
  return a.values.reduce((most, value, index) => Math.max(most, Math.abs(value - (b.values[index] ?? 2))), 0);
}

/** The reference network in both of its forms, on one engine. */
export function describeReferenceStream(name: string, start: () => Promise<Started>): void {
  describe(`the streaming reference model on ${name}`, { timeout: 40_000 }, () => {
    let engine: Started;
    beforeAll(async () => {
      engine = await start();
    }, 90_000);
    afterAll(() => engine?.stop(), 30_000);

    async function ask(model: string, audio: Float32Array, parameters: object = {}): Promise<Scores> {
      const answer = await infer(engine, model, tensorsOf(audio), { parameters: { ...parameters } });
      const frames = readInt32(answer.outputs.find((output) => output.name === 'FRAMES')!);
      const count = frames.ok ? frames.value[0]! : 0;
      return {
        frames: count,
        values: floats(answer, 'LOG_PROBS')
          .slice(0, count * WIDTH)
          .map(Math.exp),
      };
    }

    /** Sends an utterance in windows, as the agent does, with other requests beside each window. */
    async function stream(
      audio: Float32Array,
      id: number | string,
      beside: (window: number) => Promise<unknown> = async () => {},
    ): Promise<Scores> {
      const others: Promise<unknown>[] = [];
      const values: number[] = [];
      let frames = 0;
      for (let at = 0; ; at += HOP) {
        const last = at + WINDOW >= audio.length;
        const flags = { sequence_id: id, sequence_start: at === 0, sequence_end: last };
        others.push(beside(at / HOP));
        const part = await ask('reference-en-stream', audio.slice(at, at + WINDOW), flags);
        frames += part.frames;
        values.push(...part.values);
        if (!last) continue;
        await Promise.all(others);
        return { frames, values };
      }
    }

    it('A5: windows give the result of the whole utterance', async () => {
      for (const [index, samples] of [40_000, 5_000, 61_234].entries()) {
        const audio = sound(samples, index + 2);
        const whole = await ask('reference-en', audio);
        const parts = await stream(audio, index + 1);
        expect(parts.frames).toBe(whole.frames);
        expect(distance(whole, parts)).toBeLessThan(CLOSE);
      }
    });

    it('A1 A5: concurrent utterances share batches and keep their own results', async () => {
      const clips = [30_000, 33_000, 41_000, 25_000, 38_000, 36_000].map((samples, index) => sound(samples, index + 3));
      const alone: Scores[] = [];
      for (const [index, clip] of clips.entries()) alone.push(await stream(clip, `alone ${index}`));
      const before = await batchCounts(engine, 'asr_stream');
      const together = await Promise.all(clips.map((clip, index) => stream(clip, `together ${index}`)));
      const after = await batchCounts(engine, 'asr_stream');
      const shared = Object.keys(after).filter((size) => after[Number(size)] !== before[Number(size)]);
      expect(shared.some((size) => Number(size) > 1)).toBe(true);
      for (const [index, scores] of together.entries()) {
        expect(scores.frames).toBe(alone[index]!.frames);
        expect(distance(scores, alone[index]!), `utterance ${index}`).toBeLessThan(CLOSE);
      }
    });

    it('R1 A1 A18: recordings beside streams fail no step and change none', async () => {
      const clips = [30_000, 33_000, 41_000, 25_000, 38_000, 36_000].map((samples, index) => sound(samples, index + 3));
      const alone: Scores[] = [];
      for (const [index, clip] of clips.entries()) alone.push(await stream(clip, `undisturbed ${index}`));
      const recording = (seed: number) => ask('reference-en', sound(9_000 + 2_500 * seed, seed));
      const mixed = await Promise.all(
        clips.map((clip, index) => stream(clip, `mixed ${index}`, (window) => recording(1 + ((index + window) % 4)))),
      );
      for (const [index, scores] of mixed.entries()) {
        expect(scores.frames).toBe(alone[index]!.frames);
        expect(distance(scores, alone[index]!), `utterance ${index}`).toBeLessThan(CLOSE);
      }
    });

    it('R1 A15: passes the mixed load of the load gate', async () => {
      const { infer, close } = createKserveEngine(engine.url, 2 * MEASURE_STREAMS);
      const live = { model: 'reference-en-stream', windowSamples: WINDOW, hopSamples: HOP };
      const found = await findStreamProblem({ infer, model: 'reference-en', live }).finally(close);
      expect(found).toBeUndefined();
    });

    it('A1 A5: a window of another length fails no other stream', async () => {
      const clip = sound(30_000, 3);
      const alone = await stream(clip, 'before the long window');
      const long = (window: number) =>
        askInfer(engine, 'reference-en-stream', tensorsOf(sound(20_000, 2)), {
          parameters: { sequence_id: `long ${window}`, sequence_start: true, sequence_end: true },
        });
      const beside = await stream(clip, 'beside the long window', long);
      expect(beside.frames).toBe(alone.frames);
      expect(distance(alone, beside)).toBeLessThan(CLOSE);
    });
  });
}
