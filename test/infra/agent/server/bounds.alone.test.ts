import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { sha256 } from '../../../../infra/pool/agent/identity/keys.ts';
import { REQUESTS_IN_FLIGHT_MAX } from '../../../../infra/pool/agent/request/request-slots.ts';
import { UTTERANCE_S, UTTERANCES_IN_FLIGHT_MAX } from '../../../../infra/pool/agent/settings/limits.ts';
import { CLASS_SHARE } from '../../../../shared/pool/limits.ts';
import type { AnswerEvent } from '../../../../shared/speech/transcript.ts';
import { askShort, type ShortAnswer, type ShortRequest, sealTo } from '../../../fake/edge.ts';
import { audioForm, boundary, joinSamples, multipart, silence, voice, wavFile } from '../fixtures.ts';
import { type Bench, patience, startBench } from '../start-agent.ts';

// Dozens of sealed requests at once, on a machine that may have other work.
vi.setConfig({ testTimeout: 40_000 });

let bench: Bench;
afterEach(() => bench.stop());

const spoken = wavFile(joinSamples(silence(0.3), voice(0.5), silence(0.8)));
const ask = (changes: Partial<ShortRequest> = {}) =>
  askShort({
    url: bench.agent.url,
    agent: 'agent-1',
    attestation: bench.agent.keys.current().token,
    edge: bench.edge,
    body: audioForm(spoken),
    contentType: multipart,
    ...changes,
  });
const lastOf = (events: AnswerEvent[]) => events.at(-1);

/** A gate for the engine, closed. */
function close(): () => void {
  let open = () => {};
  bench.engine.gate = new Promise((resolve) => {
    open = resolve;
  });
  return open;
}

/** Waits until the agent's metrics have this line. */
const metric = (line: string) =>
  expect.poll(async () => (await fetch(`${bench.agent.url}/metrics`)).text(), patience).toContain(`${line}\n`);

/** Waits until `read` has not changed for many turns of the event loop: everything that can move has moved. */
async function settled(read: () => number): Promise<number> {
  let value = read();
  for (let still = 0; still < 2_000; still++) {
    await new Promise(setImmediate);
    if (read() !== value) still = 0;
    value = read();
  }
  return value;
}

describe('back-pressure', () => {
  it('reads no further than the utterances in flight: a 64 MB upload waits (C5)', async () => {
    bench = await startBench({ AURICLE_SLOTS: '2' });
    const open = close();
    const second = Buffer.from(wavFile(voice(1)).subarray(44));
    const seconds = Math.floor((64 * 1024 * 1024) / second.length);
    let sent = 0;
    async function* body() {
      const header = wavFile(new Float32Array(0), 16_000, 0xffffffff);
      yield Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`);
      yield header;
      for (let i = 0; i < seconds; i++) {
        sent += second.length;
        yield second;
      }
    }
    const cancel = new AbortController();
    const answer = ask({ body: body(), signal: cancel.signal });
    await expect.poll(() => bench.engine.seen.length, patience).toBe(2);
    const read = await settled(() => sent);
    // Four utterances of 20 s, one being cut, and what sockets and segments hold.
    const utterances = (UTTERANCES_IN_FLIGHT_MAX + 1) * UTTERANCE_S * 32_000;
    expect(read).toBeLessThan(utterances + 10 * 1024 * 1024);
    cancel.abort();
    await answer;
    open();
  });
});

describe('room', () => {
  /** Slots of one class while the others are idle: their shares stay free. */
  const most = REQUESTS_IN_FLIGHT_MAX * (1 - 3 * CLASS_SHARE);

  it('is refused as busy beyond the requests in flight, before the body is read', async () => {
    bench = await startBench();
    const open = close();
    const inside = Array.from({ length: most }, () => ask());
    await metric(`auricle_agent_requests_in_flight ${most}`);
    expect(await ask()).toMatchObject({ status: 503, reason: 'pool_busy', retryAfter: 1 });
    open();
    const answers = await Promise.all(inside);
    expect(new Set(answers.map(({ events }) => lastOf(events)?.type))).toEqual(new Set(['final']));
    expect((await ask()).status).toBe(200);
  });
});

describe('R13 A2 callers of two tenants and classes', () => {
  it('serves 25 realtime requests of one tenant beside 150 batch requests of another', async () => {
    bench = await startBench();
    const setup = await sealTo(bench.agent.keys.current().token);
    const ticket = await bench.edge.ticket({
      v: 2,
      aud: 'agent-1',
      enc: Buffer.from(setup.enc).toString('base64url'),
      att: sha256(bench.agent.keys.current().token),
      suite: 5,
    });
    let lane = 1;
    const call = (name: string, tenant: string) =>
      ask({ setup, ticket, lane: lane++, claims: { class: name, tenant } });
    const endings = async (answers: readonly Promise<ShortAnswer>[]) => {
      const counts: Record<string, number> = {};
      for (const { reason, events } of await Promise.all(answers)) {
        const last = lastOf(events);
        const how = reason ?? (last?.type === 'refusal' ? `${last.reason} inside` : String(last?.type));
        counts[how] = (counts[how] ?? 0) + 1;
      }
      return counts;
    };

    const open = close();
    const batch = Array.from({ length: 150 }, () => call('batch', 'many'));
    let refused = 0;
    for (const answer of batch) void answer.then(({ reason }) => (refused += reason === 'pool_busy' ? 1 : 0));
    await expect.poll(() => refused, patience).toBe(98);
    await expect.poll(() => bench.engine.seen.length, patience).toBe(4);
    const realtime = Array.from({ length: 25 }, () => call('realtime', 'few'));
    // The engine is still at work on four batch utterances.
    await metric('auricle_agent_queue_depth{class="realtime"} 25');
    open();
    expect(await endings(realtime)).toEqual({ final: 25 });
    // Four realtime requests have the share of their class, each other one the slot of a waiting batch request.
    expect(await endings(batch)).toEqual({ pool_busy: 98, 'pool_busy inside': 21, final: 31 });
  });
});

describe('stopping', () => {
  it('finishes what is in flight and refuses what is new', async () => {
    bench = await startBench({ AURICLE_DRAIN_MS: '60000' });
    const open = close();
    const inside = ask();
    await expect.poll(() => bench.engine.seen.length, patience).toBe(1);
    const stopped = bench.agent.stop();
    expect(await ask()).toMatchObject({ status: 503, reason: 'pool_busy' });
    open();
    expect(lastOf((await inside).events)?.type).toBe('final');
    await stopped;
  });

  it('tells those it cannot wait for', async () => {
    bench = await startBench({ AURICLE_DRAIN_MS: '0' });
    close();
    const inside = ask();
    await expect.poll(() => bench.engine.seen.length, patience).toBe(1);
    const [answer] = await Promise.all([inside, bench.agent.stop()]);
    expect(answer.whole).toBe(true);
    expect(lastOf(answer.events)).toMatchObject({ type: 'refusal', reason: 'pool_busy' });
  });
});

describe('a dead engine', () => {
  it('is a refusal inside the answer, not silence', async () => {
    bench = await startBench();
    await bench.engine.stop();
    const { events, whole } = await ask();
    expect(whole).toBe(true);
    expect(lastOf(events)).toMatchObject({ type: 'refusal', reason: 'engine_failed' });
  });
});

describe('compressed recordings, all the way', () => {
  it.each(['mono-8k.flac', 'mono-8k.oga', 'stereo-44k.mp3', 'mono.opus'])('%s', async (name) => {
    bench = await startBench();
    const file = readFileSync(path.join(import.meta.dirname, '../clips', name));
    const { events } = await ask({ body: audioForm(file) });
    expect(lastOf(events)).toMatchObject({ type: 'final', segments: 1 });
    const [heard] = bench.engine.seen;
    // The engine gets 16 kHz, whatever came in.
    expect(heard?.samples.length).toBeGreaterThan(0.5 * 16_000);
    expect(heard?.samples.length).toBeLessThan(0.8 * 16_000);
  });
});
