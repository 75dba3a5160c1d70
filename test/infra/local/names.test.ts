import { expect, it } from 'vitest';
import { missingNames } from '../../../infra/local/names.ts';

it('U3 gives the names of official clients to served models, and leaves set ones', () => {
  const models = [
    { id: 'other-en', task: 'transcribe' },
    { id: 'reference-en', task: 'transcribe' },
    { id: 'voice-de', task: 'synthesize' },
  ];
  const missing = missingNames(['nova-3'], models);
  expect(missing).toContainEqual({ name: 'default', model: 'reference-en' });
  expect(missing).toContainEqual({ name: 'tts-1', model: 'voice-de' });
  expect(missing.some(({ name }) => name === 'nova-3')).toBe(false);
  expect(missingNames([], [])).toEqual([]);
});
