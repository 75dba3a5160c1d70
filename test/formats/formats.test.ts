import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { enableAac } from '../../infra/pool/agent/audio/aac.ts';
import { decodeSound } from '../../infra/pool/agent/audio/decode.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'formats-'));
afterAll(() => rmSync(folder, { recursive: true }));
enableAac();

const ffmpeg = (...options: string[]) =>
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...options], { maxBuffer: 64 * 2 ** 20 });

/** First channel, as the agent decodes it. */
async function ours(file: string) {
  async function* pieces() {
    yield new Uint8Array(readFileSync(file));
  }
  const samples: number[] = [];
  let shape = { rate: 0, channels: 0 };
  for await (const block of decodeSound(pieces())) {
    if (!block.ok) throw new Error(`${block.refusal.reason} ${JSON.stringify(block.refusal.params)}`);
    shape = { rate: block.value.rate, channels: block.value.channels.length };
    for (const sample of block.value.channels[0] ?? []) samples.push(sample);
  }
  return { ...shape, samples };
}

/** First channel, as ffmpeg decodes it. */
function theirs(file: string, rate: number): Float32Array {
  const bytes = ffmpeg('-i', file, '-af', 'pan=mono|c0=c0', '-ar', String(rate), '-f', 'f32le', '-');
  return new Float32Array(Uint8Array.from(bytes).buffer);
}

/** Signal to difference, dB. */
function agreement(wanted: Float32Array, samples: readonly number[]): number {
  const difference = wanted.reduce((sum, sample, i) => sum + (sample - (samples[i] ?? 0)) ** 2, 0);
  return 10 * Math.log10(wanted.reduce((sum, sample) => sum + sample ** 2, 0) / difference);
}

const clip = path.resolve(import.meta.dirname, '../clips/balance.wav');
const layouts: Readonly<Record<number, string>> = { 1: 'mono', 2: 'stereo', 6: '5.1', 8: '7.1' };

/** Name of the file, codec, rate, channels, and the least agreement, dB. */
type Row = readonly [name: string, codec: string, rate: number, channels: number, least: number];

const rows: readonly Row[] = [
  ['u8.wav', 'pcm_u8', 44_100, 1, 90],
  ['s24.wav', 'pcm_s24le', 48_000, 2, 90],
  ['s32.wav', 'pcm_s32le', 96_000, 6, 90],
  ['f32.wav', 'pcm_f32le', 44_100, 1, 90],
  ['f64.wav', 'pcm_f64le', 192_000, 8, 90],
  ['mulaw.wav', 'pcm_mulaw', 8_000, 1, 90],
  ['alaw.wav', 'pcm_alaw', 8_000, 1, 90],
  ['ms.wav', 'adpcm_ms', 22_050, 2, 90],
  // ffmpeg rounds the steps of IMA otherwise than the specification does.
  ['ima.wav', 'adpcm_ima_wav', 22_050, 2, 30],
  ['s16.aiff', 'pcm_s16be', 44_100, 2, 90],
  ['s24.aiff', 'pcm_s24be', 48_000, 1, 90],
  ['f64.aiff', 'pcm_f64be', 48_000, 1, 90],
  ['ulaw.aiff', 'pcm_mulaw', 8_000, 1, 90],
  ['six.flac', 'flac', 96_000, 6, 90],
  ['last.m4a', 'aac', 44_100, 1, 90],
  ['stereo.m4a', 'aac', 48_000, 2, 90],
  ['frames.aac', 'aac', 16_000, 1, 90],
  ['tracks.mka', 'aac', 44_100, 2, 90],
];

describe('recordings of ffmpeg', () => {
  it.each(rows)('U1 %s of %s agrees with ffmpeg', async (name, codec, rate, channels, least) => {
    const file = path.join(folder, name);
    // The clip is mono: each channel gets all of it.
    const copies = Array.from({ length: channels }, (_, channel) => `c${channel}=c0`).join('|');
    ffmpeg('-i', clip, '-af', `pan=${layouts[channels]}|${copies}`, '-ar', String(rate), '-c:a', codec, file);
    const decoded = await ours(file);
    expect([decoded.rate, decoded.channels]).toEqual([rate, channels]);
    expect(agreement(theirs(file, rate), decoded.samples)).toBeGreaterThan(least);
  });

  it('U1 MP4 with its index in front and in fragments agrees with ffmpeg', async () => {
    for (const flags of ['faststart', 'frag_keyframe+empty_moov', 'frag_every_frame+empty_moov+default_base_moof']) {
      const file = path.join(folder, `${flags.replaceAll('+', '-')}.mp4`);
      ffmpeg('-i', clip, '-ar', '44100', '-c:a', 'aac', '-movflags', flags, file);
      expect(agreement(theirs(file, 44_100), (await ours(file)).samples), flags).toBeGreaterThan(90);
    }
  });

  it.each(['opus.webm', 'opus.mka', 'opus.mp4', 'vorbis.webm', 'vorbis.ogg'])(
    'U1 %s lasts as long as its source',
    async (name) => {
      const file = path.join(folder, name);
      const codec = name.startsWith('opus') ? 'libopus' : 'libvorbis';
      ffmpeg('-i', clip, '-ar', '16000', '-c:a', codec, file);
      const { samples, rate } = await ours(file);
      const seconds = theirs(clip, 16_000).length / 16_000;
      // Padding of the last packet stays.
      expect(samples.length / rate).toBeGreaterThan(seconds - 0.001);
      expect(samples.length / rate).toBeLessThan(seconds + 0.13);
    },
  );
});
