import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toCues } from '../../../shared/speech/cues.ts';
import type { Segment, Word } from '../../../shared/speech/transcript.ts';

function segment(words: Word[]): Segment {
  return {
    type: 'segment',
    index: 0,
    start: words[0]?.start ?? 0,
    end: words.at(-1)?.end ?? 1,
    text: words.map(({ word }) => word).join(' '),
    confidence: 1,
    logProbability: 0,
    words,
  };
}

/** Words of 0.3 s each; a number pauses that long before the next. */
function say(...parts: (string | number)[]): Segment {
  const words: Word[] = [];
  let at = 0;
  for (const part of parts) {
    if (typeof part === 'number') at += part;
    else {
      for (const word of part.split(' ')) {
        words.push({ word, start: at, end: at + 0.3, confidence: 1 });
        at += 0.3;
      }
    }
  }
  return segment(words);
}

describe('R1 subtitles are short enough to read', () => {
  it('keeps a short sentence on one line', () => {
    expect(toCues([say('hello world')])).toEqual([{ start: 0, end: 0.6, text: 'hello world' }]);
  });

  it('breaks a longer one into two lines of about the same length', () => {
    const [cue] = toCues([say('it was cold this morning but tomorrow will be warm and sunny')]);
    expect(cue?.text).toBe('it was cold this morning but\ntomorrow will be warm and sunny');
  });

  it('starts a new cue where the speaker pauses', () => {
    const cues = toCues([
      say('one two three four five six seven', 0.5, 'eight nine ten eleven twelve thirteen fourteen fifteen sixteen'),
    ]);
    expect(cues.map(({ text }) => text.replace('\n', ' '))).toEqual([
      'one two three four five six seven',
      'eight nine ten eleven twelve thirteen fourteen fifteen sixteen',
    ]);
  });

  it('a segment without word times stays whole', () => {
    expect(toCues([{ ...say('hello'), words: [], text: 'hello' }])).toHaveLength(1);
  });

  it('keep every word, the order of time, and both bounds', () => {
    const words = fc.array(
      fc.record({ word: fc.stringMatching(/^[a-z]{1,30}$/), length: fc.nat(30), pause: fc.nat(20) }),
      { minLength: 1, maxLength: 80 },
    );
    fc.assert(
      fc.property(words, (drawn) => {
        let at = 0;
        const spoken = drawn.map(({ word, length, pause }) => {
          const start = at + pause / 10;
          at = start + length / 10;
          return { word, start, end: at, confidence: 1 };
        });
        const cues = toCues([segment(spoken)]);
        expect(cues.flatMap(({ text }) => text.split(/\s/))).toEqual(spoken.map(({ word }) => word));
        cues.forEach((cue, index) => {
          const count = cue.text.split(/\s/).length;
          if (count > 1) {
            expect(cue.text.length).toBeLessThanOrEqual(84);
            expect(cue.end - cue.start).toBeLessThanOrEqual(7 + 1e-9);
          }
          expect(cue.start).toBeGreaterThanOrEqual(cues[index - 1]?.end ?? 0);
        });
      }),
    );
  });
});
