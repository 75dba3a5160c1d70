// Live streams on the stack's Tritons: clients receive the embedded engine's results, under all faults of a
// Triton.
import path from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Stack } from '../../infra/local/stack.ts';
import { finish, type Line, listen } from '../fault/streams/listener.ts';
import { noStreams, poolOfStream } from '../fault/streams/place.ts';
import { part, story } from '../fault/streams/sound.ts';
import { type Speaker, speak } from '../fault/streams/speaker.ts';
import { run } from '../stack/running.ts';
import { processesOf } from './processes.ts';

/** The stack under test, which `beforeAll` starts, and its folder. */
type Place = { readonly stack: Stack; readonly state: string };

/** Position in the middle of the second sentence, seconds. */
const MIDDLE = story.second + 1.5;
const patience = { timeout: 90_000, interval: 50 };

const toLines = (segments: Awaited<ReturnType<Speaker['finish']>>): Line[] =>
  segments.map(({ text, start, end, words }) => [
    text,
    start,
    end,
    words.map(({ word, start, end }) => [word, start, end] as const),
  ]);

/** Transcript of one client of each protocol. */
async function hear(place: Pick<Place, 'stack'>): Promise<Line[][]> {
  const [speaker, listener] = [speak(place), await listen(place)];
  listener.send(story.bytes);
  await speaker.send(story.bytes);
  return [toLines(await speaker.finish()), await finish(listener)];
}

async function hearEmbedded(): Promise<Line[]> {
  const embedded = await run();
  try {
    return (await hear(embedded))[0] ?? [];
  } finally {
    await embedded.end();
  }
}

/** Kills processes of the pools' Tritons, not their parents; returns their number. */
async function killOf(state: string, pools: readonly string[], kind: RegExp): Promise<number> {
  const found = await Promise.all(pools.map((pool) => processesOf(path.join(state, 'engines', pool))));
  const pids = found.flat().flatMap(({ pid, command }) => (kind.test(command) ? [pid] : []));
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  return pids.length;
}

const SERVER = /^\S*tritonserver /;
/** The process with the states of sequences. Without it Triton reports ready, and fails. */
const STATES = /^\S*triton_python_backend_stub \S*\/asr_stream\//;

/** A client in the middle of the second sentence, and the pool that serves it. */
async function speakIntoSecond({ stack }: Place): Promise<{ speaker: Speaker; pool: string }> {
  const speaker = speak({ stack });
  await speaker.send(part(0, MIDDLE));
  await speaker.until((event) => event.type === 'interim' && event.words.some(({ start }) => start >= story.second));
  return { speaker, pool: await poolOfStream(stack) };
}

async function sayTheRest(speaker: Speaker): Promise<Line[]> {
  await speaker.send(part(MIDDLE));
  return toLines(await speaker.finish());
}

export function describeLive(place: () => Place): void {
  describe('R1 live streams', { timeout: 150_000 }, () => {
    let undisturbed: Line[];
    beforeAll(async () => {
      undisturbed = await hearEmbedded();
    }, 120_000);
    afterEach(() => noStreams(place().stack));

    it('A5 C10: give the words and times of the embedded engine', async () => {
      expect(undisturbed.map(([text]) => text)).toEqual(story.texts);
      expect(await hear(place())).toEqual([undisturbed, undisturbed]);
    });

    it.each([
      { killed: 'the Triton of its pool', kind: SERVER, all: false },
      { killed: 'every Triton', kind: SERVER, all: true },
      { killed: 'the model’s process in its pool', kind: STATES, all: false },
    ])('A8 C6: a stream continues when $killed dies within an utterance', async ({ kind, all }) => {
      const { stack, state } = place();
      const { speaker, pool } = await speakIntoSecond(place());
      const pools = all ? stack.pools.map(({ name }) => name) : [pool];
      const parts = pools.map((name) => `engine-${name}` as const);
      const before = parts.map(stack.pid);
      expect(await killOf(state, pools, kind)).toBe(pools.length);
      expect(await sayTheRest(speaker)).toEqual(undisturbed);
      const back = () => parts.map((name, at) => stack.isReady(name) && stack.pid(name) !== before[at]);
      await expect.poll(back, patience).toEqual(parts.map(() => true));
    });
  });
}
