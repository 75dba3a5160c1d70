import { FLACDecoder } from '@wasm-audio-decoders/flac';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok } from '../../../../shared/result.ts';
import type { SoundDecoder } from './decode.ts';
import { createOggGuard } from './ogg.ts';
import { decoded, nothingDecoded, sampleCount } from './package-decoder.ts';

const findStreamInfo = (head: Uint8Array) => {
  // In Ogg the mapping header (13 bytes behind the page's start at 28) comes before the native signature.
  const at = head[0] === 0x4f ? 28 + 9 : 0;
  return new DataView(head.buffer, head.byteOffset + at + 8, 18);
};

/** Total samples from STREAMINFO (RFC 9639 §8.2), 0 when the writer did not know. */
function readTotal(head: Uint8Array): number {
  if (head.length < 64) return 0;
  const info = findStreamInfo(head);
  return (info.getUint8(13) & 0x0f) * 2 ** 32 + info.getUint32(14);
}

/**
 * FLAC by libFLAC. A constant frame of 14 bytes stands for up to 65,535 samples of 8 channels, which is why slices are
 * so small: one unpacks to at most 37 MB.
 */
export async function openFlac(): Promise<SoundDecoder> {
  const decoder = new FLACDecoder();
  await decoder.ready;
  let samples = 0;
  let total: number | undefined;
  let ogg: ReturnType<typeof createOggGuard> | undefined;
  return {
    sliceBytes: 256,
    async push(slice) {
      if (total === undefined) {
        total = readTotal(slice);
        if (slice[0] === 0x4f) ogg = createOggGuard();
      }
      const pages = ogg?.push(slice);
      if (pages && !pages.ok) return pages;
      const block = await decoded(() => decoder.decode(slice));
      samples += sampleCount(block);
      return block;
    },
    async finish() {
      const whole = ogg?.finish();
      if (whole && !whole.ok) return whole;
      const rest = await decoded(() => decoder.flush());
      samples += sampleCount(rest);
      if (samples < (total ?? 0)) return no(refuse('audio_truncated', undefined, `flac ${samples} of ${total}`));
      return samples > 0 ? (rest.ok ? rest : ok(undefined)) : nothingDecoded;
    },
    free: () => decoder.free(),
  };
}
