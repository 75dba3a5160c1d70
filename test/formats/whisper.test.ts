import { afterAll, beforeAll, expect, it } from 'vitest';
import { WHISPER_MODEL } from '../../infra/pool/model-build/whisper/install-whisper.ts';
import { startEmbedded } from '../contract/engine/embedded.ts';
import { hearPrompts, naturalModels } from '../natural.ts';

let engine: Awaited<ReturnType<typeof startEmbedded>>;
beforeAll(async () => {
  engine = await startEmbedded(naturalModels, [WHISPER_MODEL]);
});
afterAll(async () => void (await engine?.stop()));

it('U4 Whisper from its package hears a person with at most one wrong word', async () => {
  const { texts, wrong } = await hearPrompts(engine.url);
  expect(texts).toHaveLength(2);
  expect(wrong, texts.join(' | ')).toBeLessThanOrEqual(1);
});
