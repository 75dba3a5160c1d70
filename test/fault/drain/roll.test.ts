// A rolling update under live streams: agents and engines are stopped by SIGTERM, one by one, each in the middle of an
// utterance of every stream. As many streams as a loaded machine of two cores carries beside restarts.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { ENGLISH_POOLS, type Running, run } from '../../stack/running.ts';
import { finish, type Line, type Listener, listen, saysAfter } from '../streams/listener.ts';
import { kill, poolsOfStreams, whole } from '../streams/place.ts';
import { join, story } from '../streams/sound.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const STREAMS = 20;
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
  for (const listener of listeners) listener.say('KeepAlive');
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
