import { describe, expect, it } from 'vitest';
import type { DecodedWord } from '../../../../infra/pool/agent/asr/decode/decoder.ts';
import { createAgreement, REDECODE_WINDOW_MS } from '../../../../infra/pool/agent/stream/agreement.ts';
import { wordsIn } from '../../../../shared/speech/words.ts';

/** Words of half a second each, from `from` ms. */
const words = (text: string, from = 0): DecodedWord[] =>
  wordsIn(text).map((word, i) => ({
    word,
    startFrame: from + 500 * i,
    endFrame: from + 500 * (i + 1),
    confidence: 0.9,
  }));

/** Agreement over sound that ends with the last word, unless `until` is given. */
function create() {
  const agreement = createAgreement();
  const push = (text: string, from = 0, until = from + 500 * wordsIn(text).length) =>
    agreement.push(words(text, from), from, until);
  return { ...agreement, push };
}

describe('R1 words of two successive decodings', () => {
  it('are stable as far as both agree', () => {
    const agreement = create();
    expect(agreement.push('I scream for')).toMatchObject({ stable: 0, whole: 2 });
    expect(agreement.push('ice cream four ever')).toMatchObject({ stable: 0, text: 'ice cream four ever' });
    expect(agreement.push('ice cream for everyone')).toMatchObject({ stable: 2 });
  });

  it('are stable whatever their case and punctuation, as last written', () => {
    const agreement = create();
    agreement.push('thank you for calling super');
    expect(agreement.push('Thank you for calling Super awesome')).toMatchObject({
      stable: 5,
      text: 'Thank you for calling Super awesome',
    });
  });

  it('leave out the last word and a decoding between the two', () => {
    const agreement = create();
    agreement.push('press on');
    expect(agreement.show(words('press wonder'), 0)).toMatchObject({ stable: 0, text: 'press wonder' });
    expect(agreement.push('press on')).toMatchObject({ stable: 1, text: 'press on' });
    expect(agreement.show(words('press one'), 0).text).toBe('press one');
  });

  it('stay when a later decoding spells them otherwise', () => {
    const agreement = create();
    agreement.push('Press one now');
    agreement.push('Press one now');
    expect(agreement.push('press, won now please').text).toBe('Press one now please');
    expect(agreement.show(words('Dress one now please.'), 0).text).toBe('Press one now please.');
  });

  it('begin the next window when nothing is heard behind them', () => {
    const agreement = create();
    agreement.push('thank you all');
    agreement.push('thank you all');
    expect(agreement.from(4_000, 0)).toBe(0);
    agreement.push('thank you');
    expect([2_400, 3_000].map((until) => agreement.from(until, 0))).toEqual([0, 500]);
  });

  it('include the last one when the sound goes on behind it', () => {
    const agreement = create();
    agreement.push('thank you', 0, 1_600);
    expect(agreement.push('thank you', 0, 1_600).stable).toBe(2);
  });

  it('are characters where the script has no spaces, and lose none', () => {
    const agreement = create();
    agreement.push('我们今天', 0, 2_000);
    expect(agreement.push('我们今夜', 0, 2_800)).toMatchObject({ text: '我们今夜', stable: 3 });
    expect(agreement.show(words('我们今天去公园'), 0)).toMatchObject({ text: '我们今天去公园', stable: 3 });
  });

  it('are not repeated by a window that begins at the last of them', () => {
    const agreement = create();
    const text = Array.from({ length: 26 }, (_, i) => `w${i}`).join(' ');
    agreement.push(text);
    agreement.push(text);
    expect(agreement.from(REDECODE_WINDOW_MS, 0)).toBe(0);
    const from = agreement.from(REDECODE_WINDOW_MS + 1_000, 0);
    expect(from).toBe(12_000);
    expect(agreement.push('W24, w25 w26 w27', from).text).toBe(`${text} w26 w27`);
    expect(agreement.push('Twenty-four w25 w26 w27', from)).toMatchObject({
      text: `${text} w26 w27`,
      stable: 27,
    });
  });
});
