import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readInt32 } from '../../../shared/kserve/tensor.ts';
import { batchCounts, floats, infer } from './client.ts';
import { startEmbedded } from './embedded.ts';
import type { Started } from './implementation.ts';
import { sound, tensorsOf } from './sound.ts';

const repository = path.resolve(import.meta.dirname, '../../../infra/pool/models/repository');
const present = existsSync(path.join(repository, 'reference-en/config.pbtxt'));

describe.skipIf(!present)(`the reference model${present ? '' : ' — skipped: its repository is missing'}`, () => {
  let engine: Started | undefined;
  beforeAll(async () => {
    engine = await startEmbedded(repository, ['reference-en', 'reference-en-fp16']);
  }, 60_000);
  afterAll(() => engine?.stop(), 30_000);

  /** Returns the log probabilities of the real frames; a batch pads the others. */
  async function transcribe(model: string, audio: Float32Array) {
    const answer = await infer(engine!, model, tensorsOf(audio));
    const frames = readInt32(answer.outputs.find(({ name }) => name === 'FRAMES')!);
    const scores = answer.outputs.find(({ name }) => name === 'LOG_PROBS')!;
    const count = frames.ok ? frames.value[0]! : 0;
    return { count, scores: floats(answer, 'LOG_PROBS').slice(0, count * scores.shape[2]!) };
  }

  it('A18: turns sound into normalised log probabilities, one row per 40 ms', async () => {
    const { count, scores } = await transcribe('reference-en', sound(16_000, 3));
    expect(count).toBeGreaterThanOrEqual(20);
    const width = scores.length / count;
    for (let frame = 0; frame < count; frame++) {
      const total = scores.slice(frame * width, (frame + 1) * width).reduce((sum, value) => sum + Math.exp(value), 0);
      expect(total).toBeCloseTo(1, 3);
    }
  });

  // Compared as probabilities: logarithms of tiny values say nothing. Dynamic quantisation scales 8-bit
  // activations by the largest value of the whole batch, so that neighbours move the last digits.
  it.each([
    ['reference-en', 0.05],
    ['reference-en-fp16', 1e-3],
  ])(
    'A1 A18: %s: ragged requests in one batch get what they would get alone',
    { timeout: 30_000 },
    async (model, tolerance) => {
      const clips = [16_000, 9_000, 24_000, 12_345, 8_000, 20_001, 30_000, 11_111].map((samples, index) =>
        sound(samples, index + 1),
      );
      const alone: Awaited<ReturnType<typeof transcribe>>[] = [];
      for (const clip of clips) alone.push(await transcribe(model, clip));
      const before = await batchCounts(engine!, 'vad_preprocess');
      const together = await Promise.all(clips.map((clip) => transcribe(model, clip)));
      const after = await batchCounts(engine!, 'vad_preprocess');
      const shared = Object.keys(after).some(
        (size) => Number(size) > 1 && after[Number(size)] !== before[Number(size)],
      );
      expect(shared).toBe(true);
      for (const [index, { count, scores }] of together.entries()) {
        expect(count).toBe(alone[index]!.count);
        const apart = scores.map((value, at) => Math.abs(Math.exp(value) - Math.exp(alone[index]!.scores[at]!)));
        expect(Math.max(...apart), `clip ${index}`).toBeLessThan(tolerance);
      }
    },
  );
});
