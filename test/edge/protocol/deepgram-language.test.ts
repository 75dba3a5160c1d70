import { expect, it } from 'vitest';
import { deepgramListen } from '../../../edge/protocol/deepgram-listen.ts';

it('R3 reads a list as the languages among which one is detected', () => {
  const query = 'model=reference&language=en,zh-yue&encoding=linear16&sample_rate=16000';
  const protocol = deepgramListen(new URL(`http://edge.test/v1/listen?${query}`));
  if (!protocol.ok) throw new Error(protocol.refusal.reason);
  expect(protocol.value.route?.()).toEqual({ model: 'reference', languages: ['en', 'yue'] });
});

it('R3 a detected language is in each result, with its confidence and model', () => {
  const query = 'model=reference&language=multi&encoding=linear16&sample_rate=16000';
  const protocol = deepgramListen(new URL(`http://edge.test/v1/listen?${query}`));
  if (!protocol.ok) throw new Error(protocol.refusal.reason);
  const place = { index: 0, start: 0, end: 1, text: 'hola', words: [], confidence: 0.9, logProbability: -0.1 };
  const frames = [
    { type: 'ready', agent: 'a', model: 'reference-en', revision: 'rev-1', language: 'auto' },
    { type: 'language', language: 'es', confidence: 0.97, model: 'reference-es' },
    { type: 'segment', ending: 'endpoint', ...place },
  ] as const;
  const [result] = frames.flatMap((event) => protocol.value.render(event, 0));
  expect(JSON.parse(String(result))).toMatchObject({
    channel: { detected_language: 'es', language_confidence: 0.97, alternatives: [{ languages: ['es'] }] },
    metadata: { model_info: { name: 'reference-es' } },
  });
});
