// Long recordings that official clients send at once, while their agent is killed.
import { expect, it, vi } from 'vitest';
import { STREAM_PACED_BYTES } from '../../../edge/stream/audio-budget.ts';
import { running } from '../here.ts';
import { openDeepgram, openOpenAi } from './official.ts';
import { kill, poolOfStream } from './place.ts';
import { join, silence, speech } from './sound.ts';

/** Ten minutes of sound take an agent half a minute of one core, more while others use it. */
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 });

const clip = speech('weather.wav');
const sentence = join(clip.bytes, silence(1));

/** Repeats one sentence for `seconds`. */
function record(seconds: number) {
  const times = Math.ceil(seconds / (clip.seconds + 1));
  const bytes = join(...Array<Uint8Array>(times).fill(sentence));
  return { times, bytes, texts: Array<string>(times).fill(clip.text) };
}

it('R1 Deepgram: ten minutes at once, and the agent killed', async () => {
  const { bytes, texts } = record(600);
  const client = await openDeepgram(running, clip.seconds + 1);
  client.send(bytes);
  const finished = client.finish();
  await client.inSecond();
  await kill(running.stack, `agent-${await poolOfStream(running.stack)}`);
  const [results, duration] = (await finished) as [[number, { alternatives: { transcript: string }[] }][], number];
  expect(results.map(([, { alternatives }]) => alternatives[0]?.transcript)).toEqual(texts);
  expect(duration).toBeCloseTo(bytes.length / 32_000, 2);
  expect(client.troubles).toEqual([]);
});

it('R1 OpenAI: three minutes at once, and the agent killed', async () => {
  const { times, bytes, texts } = record(180);
  expect(bytes.length).toBeGreaterThan(STREAM_PACED_BYTES);
  const client = await openOpenAi(running);
  client.send(bytes);
  await client.inSecond();
  await kill(running.stack, `agent-${await poolOfStream(running.stack)}`);
  const items = (await client.finish(times)) as { transcript: string; deltas: string }[];
  expect(items.map(({ transcript }) => transcript)).toEqual(texts);
  expect(items.map(({ deltas }) => deltas)).toEqual(texts);
  expect(client.troubles).toEqual([]);
});
