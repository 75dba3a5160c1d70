import { describe, expect, it } from 'vitest';
import { cutSpoken } from '../../../../infra/pool/agent/tts/cut-spoken.ts';
import { cardinalWords, ordinalWords, yearWords } from '../../../../infra/pool/agent/tts/number-words.ts';
import { spellOut } from '../../../../infra/pool/agent/tts/spell-out.ts';
import { randomOf } from '../../../fake/random.ts';
import { runs } from '../../../seeds.ts';

describe('T3: text is spelled out before a voice reads it', () => {
  it.each([
    ['Dr. Smith paid $5.20 for 3 kg.', 'doctor smith paid five dollars and twenty cents for three kilograms.'],
    ['£1, €0.05, $1 million', 'one pound, five cents, one million dollars'],
    [
      '1,234,567 and -5 and 3.14',
      'one million two hundred thirty four thousand five hundred sixty seven and minus five and three point one four',
    ],
    ['It began on 2026-11-22 at 10:05', 'it began on november twenty second, twenty twenty six at ten oh five'],
    ['At 9:00, on the 3rd of May 1984', "at nine o'clock, on the third of may nineteen eighty four"],
    ['in 2007, in 1900, in the 1990s', 'in two thousand seven, in nineteen hundred, in the nineteen nineties'],
    ['v1.2.3, 0049', 'vee one point two point three, zero zero four nine'],
    ['5-6 km, 50% off', 'five to six kilometers, fifty percent off'],
    ['The US, NASA, PDFs and an mp3', 'the you ess, nasa, pee dee effs and an em pee three'],
    ['HELLO WORLD', 'hello world'],
    ['St. John lives on Main St. now, e.g. there', 'saint john lives on main street now, for example there'],
    ['Müller’s naïve Straße — well…', "muller's naive strasse, well,"],
    ['Mail me@example.org or https://example.com', 'mail me at example dot org or example dot com'],
    ['\'Quoted\', "double" (or not)! Is it?', 'quoted, double, or not. is it?'],
    ['Tom & Jerry on 11/22', 'tom and jerry on eleven slash twenty two'],
    ['🎉 party', 'party'],
  ])('%s', (given, spoken) => expect(spellOut(given)).toBe(spoken));

  it.each(['', ' ', '...', '🎉', '日本語', '—?!', "''", '\u0301'])('%j has nothing to say', (given) =>
    expect(spellOut(given)).toBe(''),
  );

  it('numbers as people say them', () => {
    expect([0, 13, 20, 101, 1_000, 1_000_001].map((n) => cardinalWords(String(n)))).toEqual([
      'zero',
      'thirteen',
      'twenty',
      'one hundred one',
      'one thousand',
      'one million one',
    ]);
    expect(['1', '2', '12', '20', '31', '100'].map(ordinalWords)).toEqual([
      'first',
      'second',
      'twelfth',
      'twentieth',
      'thirty first',
      'one hundredth',
    ]);
    expect(['1905', '1999', '2000', '2026'].map(yearWords)).toEqual([
      'nineteen oh five',
      'nineteen ninety nine',
      'two thousand',
      'twenty twenty six',
    ]);
    expect(cardinalWords('9'.repeat(40)).split(' ')).toHaveLength(40);
  });

  it('any text becomes speakable pieces that are short and lose no word', () => {
    const parts = [
      'Dr.',
      'no. 7',
      '$',
      '1,5',
      '€3',
      ' - ',
      '...',
      'É',
      'ß',
      '\0',
      '中',
      '😀',
      "o'",
      '12:61',
      '99th',
      'B',
      'xx',
    ];
    for (let seed = 0; seed < runs(200, 10_000); seed++) {
      const random = randomOf(seed);
      const draw = () =>
        random() < 0.5
          ? parts[Math.floor(random() * parts.length)]!
          : String.fromCodePoint(Math.floor(random() * (random() < 0.8 ? 0x7f : 0xd7ff)));
      const text = Array.from({ length: Math.floor(random() * 120) }, draw).join(random() < 0.5 ? ' ' : '');
      const spoken = spellOut(text);
      expect(spoken, JSON.stringify(text)).toMatch(/^(?:[a-z][a-z',.? ]*)?$/);
      const pieces = cutSpoken(spoken, 40);
      for (const piece of pieces) expect(piece.text.length).toBeLessThanOrEqual(40);
      const letters = (words: string) => words.replace(/[^a-z]/g, '');
      expect(letters(pieces.map((piece) => piece.text).join(''))).toBe(letters(spoken));
    }
  });

  it('long text is cut at full stops, else commas, else spaces', () => {
    const texts = (text: string) => cutSpoken(text, 30).map((piece) => piece.text);
    expect(texts('the first is short. then, well, it goes on and on')).toEqual([
      'the first is short.',
      'then, well, it goes on and on',
    ]);
    expect(texts('one two three four, five six seven eight nine')).toEqual([
      'one two three four,',
      'five six seven eight nine',
    ]);
    expect(texts('a'.repeat(70))).toEqual(['a'.repeat(30), 'a'.repeat(30), 'a'.repeat(10)]);
    expect(cutSpoken('one two three. four', 16).map((piece) => piece.pauseMs)).toEqual([250, 0]);
  });
});
