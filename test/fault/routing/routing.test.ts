// Faults of one pool under load, while the other one is healthy: no recording fails, and no stream loses a sample.
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { clipBytes, clipLike } from '../../stack/clips.ts';
import { ENGLISH_POOLS, type Running, run } from '../../stack/running.ts';
import { finish, type Line, listen, saysAfter } from '../streams/listener.ts';
import { kill, noStreams, patience, takeDown, whole } from '../streams/place.ts';
import { part, story } from '../streams/sound.ts';

/** Longer limits: tests kill parts, and the next one waits for their restart. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Callers of recordings; each sends the next when it has an answer. */
const CALLERS = 3;
/** Recordings served after a fault before it ends. */
const SERVED_AFTER = 12;

/** Pause between two KeepAlive messages of a stream. */
const KEEP_ALIVE_MS = 2_000;

const POOL = 'aks-westeurope';
const AGENT = `agent-${POOL}`;
const spoken = clipLike('.wav');

let running: Running;
let undisturbed: Line[];

beforeAll(async () => {
  running = await run({ pools: ENGLISH_POOLS, agentSettings: { AURICLE_DEGRADE_WINDOW_SECONDS: '1' } });
  const listener = await listen(running);
  listener.send(story.bytes);
  undisturbed = await finish(listener);
});
afterAll(() => running?.end());
afterEach(async () => {
  await noStreams(running.stack);
  await whole(running.stack);
});

async function post(more: Readonly<Record<string, string>> = {}): Promise<Response> {
  const form = new FormData();
  form.set('model', 'reference-en');
  form.set('file', new Blob([clipBytes(spoken)]), spoken.file);
  const headers = { authorization: `Bearer ${running.stack.token}`, ...more };
  return fetch(`${running.stack.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form });
}

async function transcribe(): Promise<string> {
  const answer = await post();
  const body = (await answer.json()) as { text?: string; error?: { code: string } };
  return `${answer.status} ${body.text ?? body.error?.code}`;
}

/** Recordings of several callers until `stop`, which returns all answers. */
function startLoad() {
  const answers: string[] = [];
  let isOver = false;
  const call = async () => {
    while (!isOver) answers.push(await transcribe());
  };
  const callers = Promise.all(Array.from({ length: CALLERS }, call));
  return {
    /** Waits until `SERVED_AFTER` more recordings have an answer. */
    async more() {
      const before = answers.length;
      await expect.poll(() => answers.length - before, patience).toBeGreaterThanOrEqual(SERVED_AFTER);
    },
    async stop() {
      isOver = true;
      await callers;
      return answers;
    },
  };
}
type LoadOfCallers = ReturnType<typeof startLoad>;

const health = async (): Promise<string | undefined> => {
  const headers = { authorization: `Bearer ${running.stack.token}` };
  const answer = await fetch(`${running.stack.url}/v1/pools`, { headers });
  const { data } = (await answer.json()) as { data: { pool: string; health: string }[] };
  return data.find(({ pool }) => pool === POOL)?.health;
};

/** Faults of a pool; each lasts until recordings were served beside it. */
const faults: Readonly<Record<string, (load: LoadOfCallers) => Promise<void>>> = {
  async 'is killed'(load) {
    await kill(running.stack, AGENT);
    await load.more();
  },
  async 'stands still'(load) {
    running.stack.kill(AGENT, 'SIGSTOP');
    try {
      await expect.poll(health, patience).not.toBe('ready');
      await load.more();
    } finally {
      running.stack.kill(AGENT, 'SIGCONT');
    }
  },
  async 'is cut off'(load) {
    const restore = await takeDown(running.stack, [AGENT]);
    try {
      await load.more();
    } finally {
      restore();
    }
  },
  async 'starts and dies again and again'(load) {
    for (let turn = 0; turn < 3; turn++) {
      await kill(running.stack, AGENT);
      await expect.poll(() => running.stack.isReady(AGENT), patience).toBe(true);
    }
    await load.more();
  },
};

describe('C6 an agent under load', () => {
  it.each(Object.entries(faults))('%s, and no recording or stream notices', async (_, happen) => {
    const load = startLoad();
    try {
      await load.more();
      const streams = await Promise.all([listen(running), listen(running)]);
      const until = story.second + 1.5;
      for (const stream of streams) stream.send(part(0, until));
      await Promise.all(streams.map((stream) => stream.until(saysAfter(story.second))));
      // A stream without audio ends after ten seconds.
      const beat = setInterval(() => {
        for (const stream of streams) stream.say('KeepAlive');
      }, KEEP_ALIVE_MS);
      await happen(load).finally(() => clearInterval(beat));
      for (const stream of streams) stream.send(part(until));
      expect(await Promise.all(streams.map(finish))).toEqual(streams.map(() => undisturbed));
    } finally {
      await load.stop();
    }
    expect(new Set(await load.stop())).toEqual(new Set([`200 ${spoken.text}`]));
  });
});

/** Callers of recordings with a promise of 300 ms: more of them wait than five for each pool. */
const URGENT_CALLERS = 32;
/** Interval in which engines stand still or work, ms: longer than the promise, and shorter than a window. */
const STALL_MS = 400;

/** Lets the engines stand still every other interval. Returns the end of it. */
function stutter(): () => void {
  const engines = running.stack.parts.filter((name) => name.startsWith('engine-'));
  const kill = (signal: NodeJS.Signals) => engines.map((name) => running.stack.kill(name, signal));
  let isStill = false;
  const beat = setInterval(() => {
    isStill = !isStill;
    kill(isStill ? 'SIGSTOP' : 'SIGCONT');
  }, STALL_MS);
  return () => {
    clearInterval(beat);
    kill('SIGCONT');
  };
}

const qualityOf = ({ headers }: Response) => headers.get('x-auricle-degraded');

describe('A20 pools whose engines are too slow for their load', () => {
  it('step down, mark their answers, and step up again', async () => {
    const seen = new Set<string | null>();
    let isOver = false;
    const call = async () => {
      while (!isOver) seen.add(qualityOf(await post({ 'x-auricle-class': 'realtime' })));
    };
    const smooth = stutter();
    const callers = Promise.all(Array.from({ length: URGENT_CALLERS }, call));
    try {
      await expect.poll(() => seen.has('1'), patience).toBe(true);
    } finally {
      isOver = true;
      smooth();
      await callers;
    }
    await expect.poll(async () => qualityOf(await post()), patience).toBe(null);
  });
});
