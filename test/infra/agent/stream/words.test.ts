import { describe, expect, it } from 'vitest';
import { isWorth } from '../../../../infra/pool/agent/stream/words.ts';

describe('A6: an interim is sent if new, and confident or more stable', () => {
  const said = { text: 'one two', stable: 1 };
  const cases: [
    name: string,
    next: { text: string; stable: number; confidence: number },
    last: typeof said | undefined,
    worth: boolean,
  ][] = [
    ['the first one, at 0.79', { text: 'one', stable: 0, confidence: 0.79 }, undefined, false],
    ['the first one, at 0.8', { text: 'one', stable: 0, confidence: 0.8 }, undefined, false],
    ['the first one, at 0.81', { text: 'one', stable: 0, confidence: 0.81 }, undefined, true],
    ['another text, at 0.79', { text: 'one two three', stable: 1, confidence: 0.79 }, said, false],
    ['another text, at 0.81', { text: 'one two three', stable: 1, confidence: 0.81 }, said, true],
    ['the same text, at 0.81', { text: 'one two', stable: 1, confidence: 0.81 }, said, false],
    ['the same text, at 1', { text: 'one two', stable: 1, confidence: 1 }, said, false],
    ['the same text, of which more will stay', { text: 'one two', stable: 2, confidence: 0.1 }, said, true],
    ['more text, of which more will stay', { text: 'one two three', stable: 2, confidence: 0.1 }, said, true],
    ['the first one, of which something will stay', { text: 'one', stable: 1, confidence: 0 }, undefined, true],
    ['another text, of which less will stay', { text: 'one too', stable: 0, confidence: 0.79 }, said, false],
    ['nothing, however sure', { text: '', stable: 0, confidence: 1 }, undefined, false],
  ];
  it.each(cases)('%s', (_name, next, last, worth) => {
    expect(isWorth(next, last)).toBe(worth);
  });
});
