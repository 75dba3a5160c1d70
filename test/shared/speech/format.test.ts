import { describe, expect, it } from 'vitest';
import { sniffBytes, sniffFormat } from '../../../shared/speech/format.ts';

const bytes = (...parts: (string | number[])[]) => {
  const out = new Uint8Array(sniffBytes);
  out.set(parts.flatMap((part) => (typeof part === 'string' ? [...part].map((letter) => letter.charCodeAt(0)) : part)));
  return out;
};
/** An Ogg page whose first packet starts with the given text. */
const ogg = (packet: string) => bytes('OggS', [0, 2, ...new Array(20).fill(0), 1, packet.length], packet);

describe('telling a format by its first bytes', () => {
  it.each([
    ['wav', bytes('RIFF', [4, 0, 0, 0], 'WAVEfmt ')],
    ['wav', bytes('RF64', [255, 255, 255, 255], 'WAVEds64')],
    ['aiff', bytes('FORM', [0, 0, 1, 0], 'AIFFCOMM')],
    ['flac', bytes('fLaC', [0, 0, 0, 34])],
    ['flac', ogg('\x7fFLAC\x01\x00')],
    ['opus', ogg('OpusHead\x01')],
    ['mp3', bytes('ID3', [4, 0, 0])],
    ['mp3', bytes([0xff, 0xfb, 0x90, 0x64])],
    ['mp3', bytes([0xff, 0xf3, 0x40, 0xc4])],
    ['vorbis', ogg('\x01vorbis')],
    ['webm', bytes([0x1a, 0x45, 0xdf, 0xa3])],
    ['mp4', bytes([0, 0, 0, 24], 'ftypM4A ')],
    ['aac', bytes([0xff, 0xf1, 0x50, 0x80])],
  ])('%s', (format, head) => {
    expect(sniffFormat(head)).toBe(format);
  });

  it.each([
    ['AVI', bytes('RIFF', [4, 0, 0, 0], 'AVI LIST')],
    ['Speex', ogg('Speex   ')],
    ['EBML of no head', bytes([0x1a, 0x45, 0xdf, 0xa4])],
    ['ADTS of a reserved rate', bytes([0xff, 0xf1, 0x7c, 0x80])],
    ['layer II', bytes([0xff, 0xfd, 0x90, 0x64])],
    ['MP3 of the reserved version', bytes([0xff, 0xeb, 0x90, 0x64])],
    ['MP3 of a reserved rate', bytes([0xff, 0xfb, 0x9c, 0x64])],
    ['text', bytes('hello')],
    ['nothing', new Uint8Array(0)],
    ['two bytes', Uint8Array.of(0xff, 0xfb)],
  ])('not %s', (_, head) => {
    expect(sniffFormat(head)).toBeUndefined();
  });
});
