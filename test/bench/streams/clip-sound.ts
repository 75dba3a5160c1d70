// Audio of the streams in the agent's half, and the reference network's output for it.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readLiveAudio } from '../../../infra/cli/live/audio.ts';
import { ROOT } from '../../../infra/local/root.ts';
import { encodeInferRequest } from '../../../shared/kserve/infer-request.ts';
import { decodeInferResponse } from '../../../shared/kserve/infer-response.ts';
import { fp32Tensor, int32Tensor } from '../../../shared/kserve/tensor.ts';
import { startEmbedded } from '../../contract/engine/embedded.ts';
import { FORMAT, FRAME_BYTES } from './traffic.ts';

export const REPOSITORY = path.join(ROOT, 'infra/pool/models/repository');
const CLIP = path.join(ROOT, 'test/clips/weather.wav');
/** Silence after the clip, so that each pass is an utterance. */
const PAUSE_SECONDS = 1;

/** The clip and the pause behind it, in whole frames. */
export function readSound(): { sound: Buffer; speech: Int16Array } {
  const read = readLiveAudio(readFileSync(CLIP));
  if ('problem' in read || read.audio.rate !== FORMAT.rate) throw new Error(`${CLIP} is not what is played`);
  const { samples } = read.audio;
  const frames = Math.ceil(((samples.length + PAUSE_SECONDS * FORMAT.rate) * 2) / FRAME_BYTES);
  const sound = Buffer.alloc(frames * FRAME_BYTES);
  Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength).copy(sound);
  return { sound, speech: samples };
}

/** Returns the log probabilities of the whole clip, computed once by the real engine. */
export async function recogniseOnce(speech: Int16Array): Promise<{ logProbs: number[]; tokens: number }> {
  const engine = await startEmbedded(REPOSITORY);
  try {
    const audio = Float32Array.from(speech, (sample) => sample / 0x8000);
    const inputs = [
      fp32Tensor('AUDIO', audio, [1, audio.length]),
      int32Tensor('AUDIO_LENGTH', Int32Array.of(audio.length), [1, 1]),
    ];
    const request = encodeInferRequest({ inputs, outputs: ['LOG_PROBS', 'FRAMES'], parameters: {} });
    if (!request.ok) throw new Error(request.refusal.reason);
    const { headers, chunks } = request.value;
    const url = `${engine.url}/v2/models/reference-en/infer`;
    const answer = await fetch(url, { method: 'POST', headers, body: Buffer.concat(chunks) });
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const read = decodeInferResponse(bytes, answer.headers.get('inference-header-content-length') ?? undefined);
    if (!read.ok) throw new Error(read.refusal.reason);
    const found = read.value.outputs.find(({ name }) => name === 'LOG_PROBS');
    if (!found) throw new Error('no log probabilities');
    const values = new Float32Array(new Uint8Array(found.bytes).buffer);
    return { logProbs: [...values], tokens: found.shape.at(-1) ?? 0 };
  } finally {
    await engine.stop();
  }
}
