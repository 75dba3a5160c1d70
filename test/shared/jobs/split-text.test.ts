import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  completeLength,
  PROJECT_SEGMENT_CHARACTERS,
  splitBlock,
  splitText,
  tidy,
} from '../../../shared/jobs/split-text.ts';
import { runs } from '../../seeds.ts';

const bare = (text: string) => text.normalize('NFC').replace(/\s+/gu, '');

/** Text as people and machines write it: words, signs, blank lines, other scripts, halves of nothing. */
const text = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.stringMatching(/^[a-zA-Z]{1,12}$/) },
      fc.constantFrom(
        '. ',
        '.',
        '! ',
        '? ',
        '… ',
        ', ',
        '; ',
        '\n',
        '\n\n',
        ' \n \n',
        '\r\n\r\n',
        '。',
        '"',
        ') ',
        '\t',
      ),
      fc.constantFrom('Dr. ', 'z.B. ', '3. Oktober', 'No. 5 ', '👩‍👩‍👧', 'é', 'e\u0301', 'ß', '日本', 'مرحبا '),
      fc.string({ unit: 'grapheme', maxLength: 6 }),
    ),
    { maxLength: 80 },
  )
  .map((parts) => parts.join(''));

describe('T3 text is split into blocks and segments', () => {
  it('preserves text and order in short, non-empty segments', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 8, max: 60 }), (given, most) => {
        const blocks = splitText(given, most);
        expect(bare(blocks.flat().join(' '))).toBe(bare(given));
        for (const segments of blocks) {
          expect(segments.length).toBeGreaterThan(0);
          for (const segment of segments) {
            expect(segment.length).toBeLessThanOrEqual(most);
            expect(segment).toBe(segment.trim());
            expect(segment).not.toBe('');
            expect(segment.isWellFormed()).toBe(true);
          }
        }
      }),
      { numRuns: runs(200, 5_000) },
    );
  });

  it('a segment that was split is not split again', () => {
    fc.assert(
      fc.property(text, (given) => {
        for (const segment of splitBlock(given)) expect(tidy(segment)).toBe(segment);
        const again = splitText(
          splitText(given)
            .map((block) => block.join(' '))
            .join('\n\n'),
        );
        expect(bare(again.flat().join(''))).toBe(bare(given));
      }),
      { numRuns: runs(200, 5_000) },
    );
  });

  it.each([
    ['One. Two! Three?', ['One.', 'Two!', 'Three?']],
    ['Dr. Smith met Mr. Jones at 5 p.m. today. They left.', ['Dr. Smith met Mr. Jones at 5 p.m. today.', 'They left.']],
    ['J. R. R. Tolkien wrote it. Really.', ['J. R. R. Tolkien wrote it.', 'Really.']],
    ['It cost 3.50 euros. Cheap!', ['It cost 3.50 euros.', 'Cheap!']],
    ['Das ist z.B. gut. Am 3. Oktober kommt er.', ['Das ist z.B. gut.', 'Am 3. Oktober kommt er.']],
    ['“Stop!” he said. "Why?" Nobody knew…', ['“Stop!” he said.', '"Why?"', 'Nobody knew…']],
    ['Wait... what is this?', ['Wait... what is this?']],
    ['1. Introduction', ['1. Introduction']],
    ['It was 10. Then we left.', ['It was 10.', 'Then we left.']],
    ['これは本です。あれは何ですか？', ['これは本です。', 'あれは何ですか？']],
    ['  no stop at all ', ['no stop at all']],
  ])('%j', (given, segments) => expect(splitBlock(given)).toEqual(segments));

  it('blank lines part blocks, line ends do not', () => {
    expect(splitText('One\nline.\n\n \t\nTwo.\r\n\r\nThree.\n')).toEqual([['One line.'], ['Two.'], ['Three.']]);
    expect(splitText('\n\n  \n')).toEqual([]);
  });

  it('cuts a long sentence at pauses, or anywhere without one', () => {
    const most = 30;
    const [first] = splitBlock('the first half of it is long, and the second half is, too', most);
    expect(first).toBe('the first half of it is long,');
    const endless = 'x'.repeat(100_000);
    const parts = splitBlock(endless);
    expect(parts.join('')).toBe(endless);
    expect(parts).toHaveLength(Math.ceil(100_000 / PROJECT_SEGMENT_CHARACTERS));
    const marks = `a${'\u0301'.repeat(20)}`.repeat(9);
    expect(splitBlock(marks, most).join('')).toBe(marks.normalize('NFC'));
  });
});

describe('R2 the complete sentences of a text that grows', () => {
  it.each([
    ['Hello.', ''],
    ['Hello. ', ''],
    ['Hello. Th', 'Hello.'],
    ['At 3.5 Mr. Hill ran. He', 'At 3.5 Mr. Hill ran.'],
    ['Am 3. Okto', ''],
    ['Go on... and', ''],
    ['好的。今天', '好的。'],
    ['One!\nTwo? Three', 'One!\nTwo?'],
  ])('%j', (text, complete) => expect(text.slice(0, completeLength(text))).toBe(complete));
});
