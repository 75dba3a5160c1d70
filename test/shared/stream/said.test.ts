import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Said, type Telling } from '../../../shared/stream/said.ts';
import { segmentOf } from './hearing-model.ts';

const word = (text: string) => ({ word: text, start: 0, end: 1, confidence: 0.5 });
const interim = (index: number, text: string, stable: number): Telling => ({
  type: 'interim',
  ...{ index, start: 0, end: 1, text, stable, confidence: 0.5 },
  words: text.split(' ').map(word),
});
const segment = (index: number) => segmentOf({ type: 'segment', index, text: 'x', start: 0, end: 1 });

describe('what a client was told', () => {
  it('is told once: a segment by its index, moments by their time', () => {
    const said = new Said(3);
    const judge = (...events: Telling[]) => events.map((event) => said.judge(event));
    expect(judge(segment(2), segment(3), segment(3), segment(5), segment(4))).toEqual([
      'known',
      'new',
      'known',
      'skipped',
      'new',
    ]);
    const at = (type: 'speech_started' | 'speech_ended', time: number): Telling => ({ type, at: time });
    expect(judge(at('speech_started', 1), at('speech_ended', 1), at('speech_started', 1.00001))).toEqual([
      'new',
      'new',
      'known',
    ]);
    expect(judge(at('speech_started', 2), at('speech_ended', 0.5), at('speech_ended', 2.5))).toEqual([
      'new',
      'known',
      'new',
    ]);
    expect(judge({ type: 'utterance_end', lastWordEnd: 2 }, { type: 'utterance_end', lastWordEnd: 2 })).toEqual([
      'new',
      'known',
    ]);
    expect(said.next).toBe(5);
  });

  it('what was stable stays until it is cleared', () => {
    const said = new Said(0);
    expect(said.judge(interim(0, 'we meet at', 2))).toBe('new');
    expect(said.judge(interim(0, 'we', 1))).toBe('known');
    expect(said.judge(interim(0, 'we eat at', 3))).toBe('known');
    expect(said.judge(interim(0, 'we meet it', 2))).toBe('new');
    expect(said.judge(interim(1, 'other', 1))).toBe('new');
    expect(said.judge({ type: 'cleared', id: 1 })).toBe('new');
    expect(said.judge(interim(0, 'they', 1))).toBe('new');
    expect(said.judge(segment(0))).toBe('new');
    expect(said.judge(interim(0, 'they', 1))).toBe('known');
  });

  it('never takes back a word, whatever several agents say', () => {
    const said = fc.record({
      index: fc.integer({ min: 0, max: 3 }),
      words: fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 5 }),
      stable: fc.integer({ min: 0, max: 5 }),
      final: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(said, { maxLength: 40 }), (events) => {
        const judge = new Said(0);
        const promised = new Map<number, string[]>();
        let next = 0;
        for (const { index, words, stable, final } of events) {
          if (final) {
            expect(judge.judge(segment(index))).toBe(index === next ? 'new' : index < next ? 'known' : 'skipped');
            if (index === next) next += 1;
            continue;
          }
          const count = Math.min(stable, words.length);
          if (judge.judge(interim(index, words.join(' '), count)) !== 'new') continue;
          expect(index).toBeGreaterThanOrEqual(next);
          const before = promised.get(index) ?? [];
          expect(words.slice(0, before.length)).toEqual(before);
          if (count > before.length) promised.set(index, words.slice(0, count));
        }
      }),
    );
  });
});
