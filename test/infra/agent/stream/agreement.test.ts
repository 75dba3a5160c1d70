import { describe, expect, it } from 'vitest';
import type { DecodedWord } from '../../../../infra/pool/agent/asr/decode/decoder.ts';
import { createAgreement, REDECODE_WINDOW_MS } from '../../../../infra/pool/agent/stream/agreement.ts';

/** Words of half a second each, from `from` ms. */
const words = (text: string, from = 0): DecodedWord[] =>
  text
    .split(' ')
    .map((word, i) => ({ word, startFrame: from + 500 * i, endFrame: from + 500 * (i + 1), confidence: 0.9 }));

describe('R1 words of two successive decodings', () => {
  it('are stable as far as both agree', () => {
    const agreement = createAgreement();
    expect(agreement.push(words('I scream for'), 0)).toMatchObject({ stable: 0, whole: 2 });
    expect(agreement.push(words('ice cream four ever'), 0)).toMatchObject({ stable: 0, text: 'ice cream four ever' });
    expect(agreement.push(words('ice cream for everyone'), 0)).toMatchObject({ stable: 2 });
  });

  it('are stable whatever their case and punctuation, as last written', () => {
    const agreement = createAgreement();
    agreement.push(words('thank you for calling super'), 0);
    expect(agreement.push(words('Thank you for calling Super awesome'), 0)).toMatchObject({
      stable: 5,
      text: 'Thank you for calling Super awesome',
    });
  });

  it('leave out the last word and a decoding between the two', () => {
    const agreement = createAgreement();
    agreement.push(words('press on'), 0);
    expect(agreement.show(words('press wonder'), 0)).toMatchObject({ stable: 0, text: 'press wonder' });
    expect(agreement.push(words('press on'), 0)).toMatchObject({ stable: 1, text: 'press on' });
    expect(agreement.show(words('press one'), 0).text).toBe('press one');
  });

  it('stay when a later decoding spells them otherwise', () => {
    const agreement = createAgreement();
    agreement.push(words('Press one now'), 0);
    agreement.push(words('Press one now'), 0);
    expect(agreement.push(words('press, won now please'), 0).text).toBe('Press one now please');
    expect(agreement.show(words('Dress one now please.'), 0).text).toBe('Press one now please.');
  });

  it('are not repeated by a window that begins at the last of them', () => {
    const agreement = createAgreement();
    const text = Array.from({ length: 26 }, (_, i) => `w${i}`).join(' ');
    agreement.push(words(text), 0);
    agreement.push(words(text), 0);
    expect(agreement.from(REDECODE_WINDOW_MS, 0)).toBe(0);
    const from = agreement.from(REDECODE_WINDOW_MS + 1_000, 0);
    expect(from).toBe(12_000);
    expect(agreement.push(words('W24, w25 w26 w27', from), from).text).toBe(`${text} w26 w27`);
    expect(agreement.push(words('Twenty-four w25 w26 w27', from), from)).toMatchObject({
      text: `${text} w26 w27`,
      stable: 27,
    });
  });
});
