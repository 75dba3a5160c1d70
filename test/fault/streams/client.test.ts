// Clients that lose their connection. Ours buffers unsettled audio and loses nothing; an official one buffers
// nothing and begins another session.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { oggPackets } from '../../ogg-packets.ts';
import { clipBytes, clipLike } from '../../stack/clips.ts';
import { ENGLISH_POOLS, type Running, run } from '../../stack/running.ts';
import { finish, type Line, type Listener, listen, saysAfter } from './listener.ts';
import { type Official, openDeepgram, openOpenAi } from './official.ts';
import { expectNoContent, kill, noStreams, patience, poolOfStream, poolsOfStreams, whole } from './place.ts';
import { part, story } from './sound.ts';
import { type Speaker, speak } from './speaker.ts';

/** Longer limits: tests kill parts, and the next one waits for their restart. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
/** Position in the middle of the second sentence, seconds. */
const MIDDLE = story.second + 1.5;

let running: Running;
let lines: Line[];
let segments: Awaited<ReturnType<Speaker['finish']>>;

beforeAll(async () => {
  running = await run({ pools: ENGLISH_POOLS });
  const [listener, speaker] = [await listen(running), speak(running)];
  listener.send(story.bytes);
  await speaker.send(story.bytes);
  [lines, segments] = [await finish(listener), await speaker.finish()];
});
afterAll(() => running?.end());

it('both protocols give the same undisturbed transcript', () => {
  expect(segments.map(({ text, start, end }) => [text, start, end])).toEqual(
    lines.map(([text, start, end]) => [text, start, end]),
  );
  expect(segments.map(({ text }) => text)).toEqual(story.texts);
});

/** Stops the engines of the streams' pools during `work`, so that no utterance finishes. */
async function atStandstill<T>(streams: number, work: () => Promise<T>): Promise<T> {
  const pools = await poolsOfStreams(running.stack, streams);
  const engines = (signal: NodeJS.Signals) => {
    for (const pool of pools) running.stack.kill(`engine-${pool}`, signal);
  };
  engines('SIGSTOP');
  try {
    return await work();
  } finally {
    engines('SIGCONT');
  }
}

const faults: Readonly<Record<string, (speakers: readonly Speaker[]) => Promise<void>>> = {
  'connection cut': async (speakers) => {
    for (const speaker of speakers) speaker.cut();
  },
  'Worker killed': () => kill(running.stack, 'edge'),
};

describe('edge/client loses nothing at the start, within and at the end', () => {
  it.each(Object.entries(faults))('%s', async (_, happen) => {
    const speakers = [speak(running), speak(running), speak(running)] as const;
    const [early, middle, late] = speakers;
    const inSecond = (event: { type: string; index?: number }) => event.type === 'interim' && event.index === 1;
    await early.until(({ type }) => type === 'ready');
    await Promise.all([middle, late].map((speaker) => speaker.send(part(0, MIDDLE))));
    await Promise.all([middle, late].map((speaker) => speaker.until(inSecond)));
    const finished = await atStandstill(3, async () => {
      await late.send(part(MIDDLE));
      const end = late.finish();
      await happen(speakers);
      await Promise.all(speakers.map((speaker) => expect.poll(speaker.connections, patience).toBeGreaterThan(1)));
      return { end };
    });
    await early.send(story.bytes);
    await middle.send(part(MIDDLE));
    const all = await Promise.all([early.finish(), middle.finish(), finished.end]);
    expect(all).toEqual([segments, segments, segments]);
    await whole(running.stack);
  });
});

describe('a Worker that is killed under an official client', () => {
  it('loses its connection recoverably and is served again', async () => {
    const before = await listen(running);
    before.send(part(0, MIDDLE));
    await before.until(saysAfter(story.second));
    await kill(running.stack, 'edge');
    // Official clients reconnect after every code but 1000.
    expect((await before.closed).code).not.toBe(1000);
    await whole(running.stack);
    const after = await listen(running);
    after.send(story.bytes);
    expect(await finish(after)).toEqual(lines);
  });

  it('C10 R1: OpenAI’s program redials, Deepgram’s client reconnects, both get everything', async () => {
    const open = () => Promise.all([openOpenAi(running), openDeepgram(running, story.second)]);
    const told = (clients: readonly Official[]) => {
      for (const client of clients) client.send(story.bytes);
      return Promise.all(clients.map((client) => client.finish()));
    };
    const calm = await told(await open());
    const [openAi, deepgram] = await open();
    for (const client of [openAi, deepgram]) client.send(part(0, MIDDLE));
    await Promise.all([openAi.inSecond(), deepgram.inSecond()]);
    await kill(running.stack, 'edge');
    await Promise.all([openAi.broken(), deepgram.broken()]);
    expect([...openAi.troubles, ...deepgram.troubles].join()).not.toMatch(/closed with 1000/);
    await whole(running.stack);
    await deepgram.back();
    expect(await told([await openOpenAi(running), deepgram])).toEqual(calm);
  });
});

describe('a pool that dies under edge/client', () => {
  it('reports the move and every segment unchanged', async () => {
    const speaker = speak(running);
    await speaker.send(part(0, MIDDLE));
    await speaker.until((event) => event.type === 'interim' && event.index === 1);
    await kill(running.stack, `agent-${await poolOfStream(running.stack)}`);
    await speaker.send(part(MIDDLE));
    expect(await speaker.finish()).toEqual(segments);
    expect(speaker.heard.map(({ type }) => type)).toContain('moved');
    expect(speaker.connections()).toBe(1);
    await whole(running.stack);
  });
});

describe('a phone that encodes Opus packets of 20 ms (R1)', () => {
  it('loses nothing when its connection breaks and then its agent', async () => {
    // The first two packets are headers of the container.
    const packets = oggPackets(clipBytes(clipLike('.opus'))).slice(2);
    const phone = () => speak(running, { encoding: 'opus', rate: 48_000, channels: 1 });
    const undisturbed = phone();
    for (const packet of packets) await undisturbed.send(packet);
    const expected = await undisturbed.finish();

    const speaker = phone();
    const [third, half] = [Math.floor(packets.length / 3), Math.floor(packets.length / 2)];
    for (const packet of packets.slice(0, third)) await speaker.send(packet);
    await speaker.until(({ type }) => type === 'interim');
    speaker.cut();
    for (const packet of packets.slice(third, half)) await speaker.send(packet);
    await expect.poll(speaker.connections, patience).toBe(2);
    await kill(running.stack, `agent-${await poolOfStream(running.stack)}`);
    for (const packet of packets.slice(half)) await speaker.send(packet);
    expect(await speaker.finish()).toEqual(expected);
    await whole(running.stack);
  });
});

describe('C10 a client reconnects from another address with its session id', () => {
  const before: Readonly<Record<string, (listener: Listener) => Promise<void>>> = {
    'before the first audio': async (listener) => {
      listener.say('KeepAlive');
      await poolOfStream(running.stack);
    },
    'in the middle of an utterance': async (listener) => {
      listener.send(part(0, MIDDLE));
      await listener.until(saysAfter(story.second));
    },
    'while it is finished': async (listener) => {
      listener.send(story.bytes);
      listener.say('Finalize');
    },
  };

  it.each(Object.entries(before))('%s: it has a session of its own', async (_, speak) => {
    const session = randomUUID();
    const first = await listen(running, { session });
    await speak(first);
    first.drop();
    const second = await listen(running, { session, from: '127.0.0.2' });
    second.send(story.bytes);
    expect(await finish(second)).toEqual(lines);
    await noStreams(running.stack);
  });
});

describe('logs of the parts', () => {
  it('has none of the words that were spoken, and no token', () => expectNoContent(running, story.texts));
});
