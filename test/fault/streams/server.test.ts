// Faults behind the edge: clients take no part in recovery and receive the undisturbed result.
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { silenceAfter } from '../../infra/agent/fixtures.ts';
import { clipBytes, clips } from '../../stack/clips.ts';
import { ENGLISH_POOLS, type Running, run } from '../../stack/running.ts';
import { wav } from '../../wav.ts';
import { finish, type Line, type Listener, listen, saysAfter } from './listener.ts';
import { openDeepgram, openOpenAi } from './official.ts';
import {
  expectNoContent,
  kill,
  noStreams,
  patience,
  poolOfStream,
  poolsOfStreams,
  read,
  takeDown,
  whole,
} from './place.ts';
import { join, part, speech, story } from './sound.ts';

/** Longer limits: tests kill parts, and the next one waits for their restart. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/**
 * Outage that all streams survive, ms: longer than the first search of a new stream, so that only new ones
 * notice.
 */
const OUTAGE_MS = 10_000;

let running: Running;
let undisturbed: Line[];

beforeAll(async () => {
  running = await run({ pools: ENGLISH_POOLS });
  const listener = await listen(running);
  listener.send(story.bytes);
  undisturbed = await finish(listener);
});
afterAll(() => running?.end());
afterEach(async () => {
  await noStreams(running.stack);
  await whole(running.stack);
});

it('undisturbed, both sentences are understood, in two segments', () => {
  expect(undisturbed.map(([text]) => text)).toEqual(story.texts);
  expect(undisturbed[1]?.[1]).toBeGreaterThan(story.second - 0.5);
});

/** Faults of the stream's pool. Each resolves when it has taken effect. */
const faults: Readonly<Record<string, (pool: string) => Promise<void>>> = {
  'agent killed': (pool) => kill(running.stack, `agent-${pool}`),
  'engine killed': (pool) => kill(running.stack, `engine-${pool}`),
  'pool drained': (pool) => kill(running.stack, `agent-${pool}`, 'SIGTERM'),
};

/** Streams into the middle of the second sentence and waits for words of it. */
async function speakIntoSecond(listener: Listener): Promise<number> {
  const until = story.second + 1.5;
  listener.send(part(0, until));
  await listener.until(saysAfter(story.second));
  return until;
}

describe('loses nothing before the first audio, within an utterance, and at its end', () => {
  it.each(Object.entries(faults))('%s', async (_, happen) => {
    const [early, middle, late] = await Promise.all([listen(running), listen(running), listen(running)]);
    early.say('KeepAlive');
    const from = await speakIntoSecond(middle);
    await speakIntoSecond(late);
    const pools = await poolsOfStreams(running.stack, 3);
    const engines = (signal: NodeJS.Signals) => {
      for (const pool of pools) running.stack.kill(`engine-${pool}`, signal);
    };
    // The engine is stopped, so that no utterance finishes before the fault.
    engines('SIGSTOP');
    late.send(part(from));
    // No metric or event shows that an agent has received the end: on a slow machine this stream breaks just
    // before.
    const finished = finish(late);
    await Promise.all(pools.map(happen));
    engines('SIGCONT');
    early.send(story.bytes);
    middle.send(part(from));
    expect(await Promise.all([finish(early), finish(middle), finished])).toEqual([
      undisturbed,
      undisturbed,
      undisturbed,
    ]);
  });
});

describe('audio in a container, when its agent is killed in its second sentence', () => {
  /** Streams a file, with a fault after words of its second sentence; returns all lines. */
  async function disturb(file: Uint8Array, second: number, until: number): Promise<Line[]> {
    const listener = await listen(running, { container: true });
    listener.send(file.subarray(0, until));
    await listener.until(saysAfter(second));
    await kill(running.stack, `agent-${await poolOfStream(running.stack)}`);
    listener.send(file.subarray(until));
    return finish(listener);
  }

  it('a WAV file: text and times stay the same', async () => {
    const file = wav(new Int16Array(story.bytes.slice().buffer));
    const until = file.length - story.bytes.length + part(0, story.second + 1.5).length;
    expect(await disturb(file, story.second, until)).toEqual(undisturbed);
  });

  it('Ogg Opus: every word is recognised once', async () => {
    const { text, seconds } = speech('balance.wav');
    const opus = clips.find(({ file }) => file === 'balance.opus');
    if (!opus) throw new Error('there is no such clip');
    const clip = clipBytes(opus);
    const file = join(clip, silenceAfter(clip, 50), clip);
    const lines = await disturb(file, seconds + 1, Math.round(file.length - clip.length / 3));
    expect(lines.map(([own]) => own)).toEqual([text, text]);
    expect(lines[1]?.[1]).toBeGreaterThan(seconds + 0.5);
  });
});

const STALLS = 'auricle_agent_stream_stalls_total';

const stalls = async () => {
  const counts = await Promise.all(running.stack.pools.map(({ name }) => read(running.stack, name, STALLS)));
  return counts.reduce((sum, count) => sum + count, 0);
};

/** Stops engines, continues the clients, and restarts the engines once their agents have noticed. */
async function standStill(pools: readonly string[], goOn: () => void): Promise<void> {
  const before = await stalls();
  const engines = (signal: NodeJS.Signals) => {
    for (const pool of pools) running.stack.kill(`engine-${pool}`, signal);
  };
  engines('SIGSTOP');
  try {
    goOn();
    await expect.poll(stalls, patience).toBeGreaterThan(before);
  } finally {
    engines('SIGCONT');
  }
}

describe('C10 R1 the unmodified clients of OpenAI and Deepgram', () => {
  /** Results of both clients with a fault in the second sentence, the rest of which `goOn` sends. */
  async function told(happen: (pools: readonly string[], goOn: () => void) => Promise<void>) {
    const clients = await Promise.all([openOpenAi(running), openDeepgram(running, story.second)]);
    const until = story.second + 1.5;
    for (const client of clients) client.send(part(0, until));
    await Promise.all(clients.map((client) => client.inSecond()));
    await happen(await poolsOfStreams(running.stack, 2), () => {
      for (const client of clients) client.send(part(until));
    });
    const all = await Promise.all(clients.map((client) => client.finish()));
    expect(clients.flatMap(({ troubles }) => troubles)).toEqual([]);
    return all;
  }
  const breaks = (part: 'agent' | 'engine') => async (pools: readonly string[], goOn: () => void) => {
    await Promise.all(pools.map((pool) => kill(running.stack, `${part}-${pool}`)));
    goOn();
  };

  /** Takes down all parts of a kind for OUTAGE_MS; new streams are refused meanwhile. */
  const takesDown = (part: 'agent' | 'engine') => async (_: readonly string[], goOn: () => void) => {
    const up = await takeDown(
      running.stack,
      running.stack.pools.map(({ name }) => `${part}-${name}`),
    );
    try {
      goOn();
      await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS));
      await expect(listen(running)).rejects.toThrow('refused: 503');
    } finally {
      up();
    }
  };

  let calm: unknown[];

  it('undisturbed, both understand both sentences', async () => {
    calm = await told(async (_, goOn) => goOn());
    for (const text of story.texts) expect(JSON.stringify(calm).split(text).length - 1).toBeGreaterThanOrEqual(2);
  });

  it.each([
    ['their agent was killed', breaks('agent')],
    ['their engine was killed', breaks('engine')],
    ['their engine stands still (A8)', standStill],
    ['all engines were down for ten seconds (C6)', takesDown('engine')],
    ['all agents were down for ten seconds (C6)', takesDown('agent')],
  ])('do not notice in the middle of an utterance that %s', async (_, happen) => {
    expect(await told(happen)).toEqual(calm);
  });
});

describe('A8: an engine that stands still', () => {
  async function stall(listener: Listener, goOn: () => void) {
    await standStill([await poolOfStream(running.stack)], goOn);
    return finish(listener);
  }

  it('before the first audio: the sequence restarts from the samples unnoticed', async () => {
    const listener = await listen(running);
    listener.say('KeepAlive');
    expect(await stall(listener, () => listener.send(story.bytes))).toEqual(undisturbed);
  });

  it('in the middle of an utterance', async () => {
    const listener = await listen(running);
    const from = await speakIntoSecond(listener);
    expect(await stall(listener, () => listener.send(part(from)))).toEqual(undisturbed);
  });

  it('while it is finished', async () => {
    const listener = await listen(running);
    const from = await speakIntoSecond(listener);
    const end = () => {
      listener.send(part(from));
      listener.say('CloseStream');
    };
    expect(await stall(listener, end)).toEqual(undisturbed);
  });
});

describe('logs of the parts', () => {
  it('has none of the words that were spoken, and no token', () => expectNoContent(running, story.texts));
});
