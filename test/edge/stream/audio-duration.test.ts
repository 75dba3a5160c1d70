import { describe, expect, it } from 'vitest';
import { secondsOf } from '../../../edge/stream/audio-duration.ts';
import type { Encoding } from '../../../shared/stream/format.ts';

const format = (encoding: Encoding, channels: 1 | 2 = 1) => ({ encoding, rate: 8_000, channels });

describe('the duration of a message', () => {
  it.each([
    ['linear16', 1, 0.1],
    ['linear16', 2, 0.05],
    ['linear32', 1, 0.05],
    ['mulaw', 1, 0.2],
    ['alaw', 2, 0.1],
  ] as const)('%s, %i channels', (encoding, channels, seconds) => {
    expect(secondsOf(new Uint8Array(1_600), format(encoding, channels))).toBeCloseTo(seconds, 9);
  });

  it.each([
    // Configuration, code of the count, second byte: RFC 6716, tables 2 and §3.1.
    ['SILK 10 ms', 0, 0, 0, 0.01],
    ['SILK 60 ms', 3, 0, 0, 0.06],
    ['SILK 60 ms twice', 11, 1, 0, 0.12],
    ['hybrid 20 ms', 15, 0, 0, 0.02],
    ['CELT 2.5 ms', 16, 0, 0, 0.0025],
    ['CELT 20 ms, two of different size', 31, 2, 0, 0.04],
    ['CELT 20 ms, five', 31, 3, 5, 0.1],
    ['SILK 20 ms, 48 of them is no packet', 1, 3, 48, 0.12],
  ])('opus: %s', (_, config, code, second, seconds) => {
    expect(secondsOf(Uint8Array.of((config << 3) | code, second), format('opus'))).toBeCloseTo(seconds, 9);
  });

  it('is 0 for an empty packet, and unknown for Ogg', () => {
    expect(secondsOf(new Uint8Array(), format('opus'))).toBe(0);
    expect(secondsOf(new Uint8Array(100), format('ogg-opus'))).toBeUndefined();
  });
});
