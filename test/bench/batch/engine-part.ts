// The engine of this benchmark, a process of its own: a KServe v2 server that answers every utterance after the same
// time, with one word. What the network would need is left out: the path before and behind it is measured.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { encodeInferResponse } from '../../../shared/kserve/infer-response.ts';
import { fp32Tensor, int32Tensor } from '../../../shared/kserve/tensor.ts';

const MODEL = 'reference-en';
const delayMs = Number(process.env.DELAY_MS ?? 20);
/** Blank, space, apostrophe and the letters, as in the model's `tokens.txt`. */
const TOKENS = 29;
const FRAME_SAMPLES = 640;
const WORD = 'account';
const tokenOf = (letter: string) => letter.charCodeAt(0) - 97 + 3;

const tensor = (name: string, datatype: string, shape: number[]) => ({ name, datatype, shape });
const metadata = {
  name: MODEL,
  versions: ['1'],
  platform: 'ensemble',
  inputs: [tensor('AUDIO', 'FP32', [-1, -1]), tensor('AUDIO_LENGTH', 'INT32', [-1, 1])],
  outputs: [tensor('LOG_PROBS', 'FP32', [-1, -1, TOKENS]), tensor('FRAMES', 'INT32', [-1, 1])],
};

const answers = new Map<number, { headers: Record<string, string | number>; body: Buffer }>();

/** Returns one word and silence: cheap decoding, since the cost of speech depends on the network. */
function answerOf(frames: number) {
  const known = answers.get(frames);
  if (known) return known;
  const logProbs = new Float32Array(frames * TOKENS).fill(-12);
  for (let frame = 0; frame < frames; frame++) {
    const letter = frame % 2 === 1 ? WORD[(frame - 1) / 2] : undefined;
    logProbs[frame * TOKENS + (letter === undefined ? 0 : tokenOf(letter))] = -0.01;
  }
  const outputs = [
    fp32Tensor('LOG_PROBS', logProbs, [1, frames, TOKENS]),
    int32Tensor('FRAMES', Int32Array.of(frames), [1, 1]),
  ];
  const encoded = encodeInferResponse({ model: MODEL, version: '1', outputs }, () => true);
  if (!encoded.ok) throw new Error(encoded.refusal.reason);
  const answer = { headers: { ...encoded.value.headers }, body: Buffer.concat(encoded.value.chunks) };
  answers.set(frames, answer);
  return answer;
}

async function infer(incoming: IncomingMessage, response: ServerResponse) {
  let bytes = 0;
  for await (const chunk of incoming) bytes += (chunk as Buffer).length;
  await pause(delayMs);
  // Four bytes a sample; the few hundred bytes of JSON are no frame.
  const { headers, body } = answerOf(Math.max(16, Math.floor(bytes / 4 / FRAME_SAMPLES)));
  response.writeHead(200, headers).end(body);
}

const answerJson = (response: ServerResponse, value: object) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));

const server = createServer((incoming, response) => {
  const at = incoming.url ?? '';
  if (at.endsWith('/infer')) return void infer(incoming, response).catch(() => response.destroy());
  if (at.startsWith('/v2/models/') && !at.startsWith(`/v2/models/${MODEL}`)) return void response.writeHead(404).end();
  if (at === `/v2/models/${MODEL}`) return void answerJson(response, metadata);
  // No queues of its own: priorities are not measured here.
  if (at === `/v2/models/${MODEL}/config`) return void answerJson(response, { name: MODEL });
  response.writeHead(at.includes('/stats') ? 404 : 200).end();
});
server.listen(Number(process.env.AURICLE_ENGINE_PORT), '127.0.0.1', () => process.send?.('ready'));
process.on('SIGTERM', () => process.exit(0));
process.on('disconnect', () => process.exit(0));
