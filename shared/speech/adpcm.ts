// Blocks of ADPCM in WAV files, of Microsoft and of IMA (RIFF multimedia data standard, "Microsoft ADPCM", "IMA ADPCM").

/** Decodes one block into an array per channel. A block that is cut has fewer samples. */
export type AdpcmDecoder = (block: DataView, channels: number) => Float32Array[];

/** Bytes before the codes of a block, per channel. */
export const adpcmHeadBytes = { ms: 7, ima: 4 } as const;

const clamp = (value: number) => Math.max(-0x8000, Math.min(0x7fff, value));

const imaSteps = Int16Array.from(
  { length: 89 },
  (_, i) =>
    [
      7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107,
      118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963,
      1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894,
      6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794,
      32767,
    ][i] ?? 0,
);
const imaMoves = [-1, -1, -1, -1, 2, 4, 6, 8] as const;

/** IMA: 4 bytes of state per channel, then words of 8 codes per channel in turn. */
export const decodeIma: AdpcmDecoder = (block, channels) => {
  const words = Math.max(0, Math.floor((block.byteLength - 4 * channels) / (4 * channels)));
  return Array.from({ length: channels }, (_, channel) => {
    const out = new Float32Array(1 + 8 * words);
    let sample = block.getInt16(4 * channel, true);
    let index = Math.min(88, block.getUint8(4 * channel + 2));
    out[0] = sample / 0x8000;
    for (let i = 0; i < 8 * words; i++) {
      const at = 4 * (channels + (i >> 3) * channels + channel) + ((i & 7) >> 1);
      const code = (block.getUint8(at) >> (4 * (i & 1))) & 15;
      const step = imaSteps[index] ?? 0;
      let change = step >> 3;
      if (code & 1) change += step >> 2;
      if (code & 2) change += step >> 1;
      if (code & 4) change += step;
      sample = clamp(code & 8 ? sample - change : sample + change);
      index = Math.max(0, Math.min(88, index + (imaMoves[(code & 7) as 0] ?? 0)));
      out[i + 1] = sample / 0x8000;
    }
    return out;
  });
};

const msAdapt = [230, 230, 230, 230, 307, 409, 512, 614, 768, 614, 512, 409, 307, 230, 230, 230] as const;
const msFirst = [256, 512, 0, 192, 240, 460, 392] as const;
const msSecond = [0, -256, 0, 64, 0, -208, -232] as const;
/** Largest step: a hostile file would double it for ever. */
const MS_DELTA_MAX = 2 ** 24;

/** Microsoft's: predictor, step and two samples per channel, then codes of the channels in turn. */
export const decodeMs: AdpcmDecoder = (block, channels) => {
  const codes = Math.max(0, 2 * (block.byteLength - 7 * channels));
  const frames = Math.floor(codes / channels);
  return Array.from({ length: channels }, (_, channel) => {
    const out = new Float32Array(2 + frames);
    const predictor = Math.min(6, block.getUint8(channel));
    const [first, second] = [msFirst[predictor] ?? 0, msSecond[predictor] ?? 0];
    let delta = block.getInt16(channels + 2 * channel, true);
    let newer = block.getInt16(3 * channels + 2 * channel, true);
    let older = block.getInt16(5 * channels + 2 * channel, true);
    out[0] = older / 0x8000;
    out[1] = newer / 0x8000;
    for (let i = 0; i < frames; i++) {
      const place = i * channels + channel;
      const code = (block.getUint8(7 * channels + (place >> 1)) >> (place & 1 ? 0 : 4)) & 15;
      const guess = (newer * first + older * second) >> 8;
      const sample = clamp(guess + (code & 8 ? code - 16 : code) * delta);
      older = newer;
      newer = sample;
      delta = Math.min(MS_DELTA_MAX, Math.max(16, ((msAdapt[code] ?? 0) * delta) >> 8));
      out[i + 2] = sample / 0x8000;
    }
    return out;
  });
};
