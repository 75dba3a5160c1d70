// A rolling update under live streams: agents and engines are stopped by SIGTERM, one by one, each in the middle of an
// utterance of every stream. Twenty streams fit a loaded machine of two cores beside the restarts;
// AURICLE_ROLL_STREAMS sets another number.
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { ENGLISH_POOLS, type Running, run } from '../../stack/running.ts';
import { finish, type Line, type Listener, listen, saysAfter } from '../streams/listener.ts';
import { kill, poolsOfStreams, whole } from '../streams/place.ts';
import { join, story } from '../streams/sound.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 });

const STREAMS = Number(process.env.AURICLE_ROLL_STREAMS ?? 20);
/** Pause between messages of clients that have no audio to send; the edge closes silent streams after 10 s. */
const KEEP_ALIVE_MS = 3_000;
const storySeconds = story.bytes.length / 32_000;
/** Starts of the sentences in two stories, seconds: one for each part that is rolled. */
const sentences = [0, story.second, storySeconds, storySeconds + story.second];
const audio = join(story.bytes, story.bytes);
const cut = (from: number, to = Number.POSITIVE_INFINITY) =>
  audio.subarray(...[from, to].map((seconds) => Math.min(audio.length, Math.round(seconds * 16_000) * 2)));

let running: Running;
let undisturbed: Line[];
beforeAll(async () => {
  running = await run({ pools: ENGLISH_POOLS });
  const listener = await listen(running);
  listener.send(audio);
  undisturbed = await finish(listener);
});
afterAll(() => running?.end());

it('R1 C10 loses no word of live streams while agents and engines are rolled', async () => {
  expect(undisturbed.map(([text]) => text)).toEqual([...story.texts, ...story.texts]);
  const { stack } = running;
  const listeners: Listener[] = await Promise.all(Array.from({ length: STREAMS }, () => listen(running)));
  const keepAlive = () => {
    for (const listener of listeners) if (!listener.ending()) listener.say('KeepAlive');
  };
  keepAlive();
  const beat = setInterval(keepAlive, KEEP_ALIVE_MS);
  onTestFinished(() => clearInterval(beat));
  const left = new Set(stack.pools.flatMap(({ name }) => [`agent-${name}`, `engine-${name}`]));
  let hits = 0;
  for (const [at, start] of sentences.entries()) {
    const middle = start + 1.5;
    for (const listener of listeners) listener.send(cut(start, middle));
    await Promise.all(listeners.map((listener) => listener.until(saysAfter(start))));
    // Parts that carry streams come first.
    const pools = await poolsOfStreams(stack, STREAMS);
    const hit = [...left].find((name) => pools.some((pool) => name.endsWith(`-${pool}`)));
    const [next = ''] = hit === undefined ? left : [hit];
    left.delete(next);
    hits += hit === undefined ? 0 : 1;
    const rolled = kill(stack, next, 'SIGTERM');
    for (const listener of listeners) listener.send(cut(middle, sentences[at + 1]));
    await rolled;
    await whole(stack);
  }
  expect([left.size, hits >= 3]).toEqual([0, true]);
  expect(await Promise.all(listeners.map(finish))).toEqual(listeners.map(() => undisturbed));
});
