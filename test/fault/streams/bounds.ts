// Streams at their bounds: silence, overload, early or excessive audio, and clients that vanish.
import { describe, expect, it, vi } from 'vitest';
import { STREAM_RING_BYTES } from '../../../edge/stream/audio-ring.ts';
import { running } from '../here.ts';
import { finish, listen, type Message, saysAfter } from './listener.ts';
import { expectNoContent, kill, noStreams, whole } from './place.ts';
import { join, part, silence, speech, story } from './sound.ts';

/** Longer limits: tests kill parts, and the next one waits for their restart. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const clip = speech('balance.wav');
const durationOf = (heard: readonly Message[]) => heard.find(({ type }) => type === 'Metadata')?.duration;

describe('60 s of silence lose no word and shift no time (§3-7, §3-22, §3-32)', () => {
  const LONG = 60;
  const SHORT = 2;
  const half = 2 * Math.floor(clip.bytes.length / 4);
  interface Case {
    readonly made: (pause: Uint8Array) => Uint8Array;
    /** Start of the pause, seconds. */
    readonly at: number;
  }
  const cases: Readonly<Record<string, Case>> = {
    'before the first word': { made: (pause) => join(pause, clip.bytes, silence(1)), at: 0 },
    'in the middle of an utterance': {
      made: (pause) => join(clip.bytes.subarray(0, half), pause, clip.bytes.subarray(half)),
      at: half / 32_000,
    },
    'between two utterances': { made: (pause) => join(clip.bytes, pause, clip.bytes), at: clip.seconds },
    'before the end': { made: (pause) => join(clip.bytes, pause), at: clip.seconds },
  };

  it.each(Object.entries(cases))('%s', async (name, { made, at }) => {
    const hear = async (seconds: number) => {
      const listener = await listen(running);
      const sound = made(silence(seconds));
      listener.send(sound);
      const told = await finish(listener);
      expect(durationOf(listener.heard)).toBeCloseTo(sound.length / 32_000, 2);
      return told;
    };
    const [near, far] = [await hear(SHORT), await hear(LONG)];
    expect(near.length).toBeGreaterThan(0);
    if (name === 'between two utterances') expect(near.map(([text]) => text)).toEqual([clip.text, clip.text]);
    // Words after the pause shift by its difference.
    const shift = (seconds: number) => expect.closeTo(seconds > at + 1 ? seconds + LONG - SHORT : seconds, 2);
    const moved = near.map(([text, start, end, words]) => [
      text,
      shift(start),
      shift(end),
      words.map(([word, from, to]) => [word, shift(from), shift(to)]),
    ]);
    expect(far).toEqual(moved);
  });
});

describe('audio that arrives while no pool is available', () => {
  /** Seconds of the story, in the middle of its first sentence. */
  const BEGUN = story.second / 2;

  it('is kept until one can (speech.md §3-17)', async () => {
    const { stack } = running;
    const listener = await listen(running);
    // A stream without an agent is refused when all agents are away: words show that this one has an agent.
    listener.send(part(0, BEGUN));
    await listener.until(saysAfter(0));
    await Promise.all(stack.pools.map(({ name }) => kill(stack, `agent-${name}`)));
    listener.send(part(BEGUN));
    const lines = await finish(listener);
    expect(lines.map(([text]) => text)).toEqual(story.texts);
  });
});

describe('more sound than may wait', () => {
  it('R1 ends with an error and 1011; the client is served again (§3-18)', async () => {
    const { stack } = running;
    const listener = await listen(running, { frameBytes: 2 ** 20 });
    listener.say('KeepAlive');
    const signal = (name: NodeJS.Signals) => stack.pools.forEach((pool) => void stack.kill(`agent-${pool.name}`, name));
    signal('SIGSTOP');
    listener.send(new Uint8Array(STREAM_RING_BYTES + 1));
    const { code, reason } = await listener.closed;
    expect([code, reason]).toEqual([1011, 'NET-0000 backlog_full']);
    expect(listener.heard.at(-1)).toMatchObject({ type: 'Error', code: 'backlog_full' });
    signal('SIGCONT');
    await whole(stack);
    const again = await listen(running);
    again.send(clip.bytes);
    expect((await finish(again)).map(([text]) => text)).toEqual([clip.text]);
  });
});

describe('a hundred clients at once', () => {
  it('are all served (speech.md §3-26)', async () => {
    const token = await running.mint({ allowance: { requestsAtOnce: 128, requestsPerMinute: 1_000 } });
    const sound = silence(0.5);
    const one = async () => {
      const listener = await listen(running, { token });
      listener.send(sound);
      await finish(listener);
      return durationOf(listener.heard);
    };
    const durations = await Promise.all(Array.from({ length: 100 }, one));
    expect(new Set(durations)).toEqual(new Set([0.5]));
  });
});

describe('logs of the parts', () => {
  it('has none of the words that were spoken, and no token', async () => {
    await noStreams(running.stack);
    expectNoContent(running, [clip.text, ...story.texts]);
  });
});
