import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ClientEvent, EventFilter } from '../../../edge/stream/event-filter.ts';
import { segmentOf } from './agent-model.ts';

const word = (text: string) => ({ word: text, start: 0, end: 1, confidence: 0.5 });
const interim = (index: number, text: string, stable: number): ClientEvent => ({
  type: 'interim',
  ...{ index, start: 0, end: 1, text, stable, confidence: 0.5 },
  words: text.split(' ').map(word),
});
const segment = (index: number) => segmentOf({ type: 'segment', index, text: 'x', start: 0, end: 1 });

describe('the event filter', () => {
  it('passes each event once: segments by index, others by time', () => {
    const filter = new EventFilter(3);
    const judge = (...events: ClientEvent[]) => events.map((event) => filter.check(event));
    expect(judge(segment(2), segment(3), segment(3), segment(5), segment(4))).toEqual([
      'repeated',
      'new',
      'repeated',
      'gap',
      'new',
    ]);
    const at = (type: 'speech_started' | 'speech_ended', time: number): ClientEvent => ({ type, at: time });
    expect(judge(at('speech_started', 1), at('speech_ended', 1), at('speech_started', 1.00001))).toEqual([
      'new',
      'new',
      'repeated',
    ]);
    expect(judge(at('speech_started', 2), at('speech_ended', 0.5), at('speech_ended', 2.5))).toEqual([
      'new',
      'repeated',
      'new',
    ]);
    expect(judge({ type: 'utterance_end', lastWordEnd: 2 }, { type: 'utterance_end', lastWordEnd: 2 })).toEqual([
      'new',
      'repeated',
    ]);
    expect(filter.next).toBe(5);
  });

  it('keeps stable words until they are cleared', () => {
    const filter = new EventFilter(0);
    expect(filter.check(interim(0, 'we meet at', 2))).toBe('new');
    expect(filter.check(interim(0, 'we', 1))).toBe('repeated');
    expect(filter.check(interim(0, 'we eat at', 3))).toBe('repeated');
    expect(filter.check(interim(0, 'we meet it', 2))).toBe('new');
    expect(filter.check(interim(1, 'other', 1))).toBe('new');
    expect(filter.check({ type: 'cleared', id: 1 })).toBe('new');
    expect(filter.check(interim(0, 'they', 1))).toBe('new');
    expect(filter.check(segment(0))).toBe('new');
    expect(filter.check(interim(0, 'they', 1))).toBe('repeated');
  });

  it('never takes back a stable word, whatever agents send', () => {
    const said = fc.record({
      index: fc.integer({ min: 0, max: 3 }),
      words: fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 5 }),
      stable: fc.integer({ min: 0, max: 5 }),
      final: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(said, { maxLength: 40 }), (events) => {
        const filter = new EventFilter(0);
        const promised = new Map<number, string[]>();
        let next = 0;
        for (const { index, words, stable, final } of events) {
          if (final) {
            expect(filter.check(segment(index))).toBe(index === next ? 'new' : index < next ? 'repeated' : 'gap');
            if (index === next) next += 1;
            continue;
          }
          const count = Math.min(stable, words.length);
          if (filter.check(interim(index, words.join(' '), count)) !== 'new') continue;
          expect(index).toBeGreaterThanOrEqual(next);
          const before = promised.get(index) ?? [];
          expect(words.slice(0, before.length)).toEqual(before);
          if (count > before.length) promised.set(index, words.slice(0, count));
        }
      }),
    );
  });
});
