import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, startAgent } from '../../../../infra/pool/agent/agent.ts';
import { readSettings } from '../../../../infra/pool/agent/settings/settings.ts';
import { type Clock, systemClock } from '../../../../infra/pool/agent/stream/clock.ts';
import { SEQUENCE_PARK_MS } from '../../../../infra/pool/agent/stream/sequence.ts';
import type { StreamFormat } from '../../../../shared/stream/format.ts';
import { startEmbedded } from '../../../contract/engine/embedded.ts';
import { makeCertificate } from '../../../fake/certificate.ts';
import { type FakeEdge, startFakeEdge } from '../../../fake/edge.ts';
import { dialLink, type FakeLink } from '../../../fake/stream-link.ts';
import { oggPackets } from '../../../ogg-packets.ts';
import { liveWebm } from '../../../webm.ts';
import { silenceAfter } from '../fixtures.ts';
import { makeEnvironment, patience } from '../start-agent.ts';

const repository = path.resolve(import.meta.dirname, '../../../../infra/pool/models/repository');
const clipFolder = path.resolve(import.meta.dirname, '../../../clips');
const clips: { file: string; text: string }[] = JSON.parse(readFileSync(path.join(clipFolder, 'clips.json'), 'utf8'));
const read = (name: string) => new Uint8Array(readFileSync(path.join(clipFolder, name)));
const textOf = (name: string) => clips.find(({ file }) => file === name)?.text ?? '';

let engine: Awaited<ReturnType<typeof startEmbedded>>;
let edge: FakeEdge;
let agent: Agent;
const folder = mkdtempSync(path.join(tmpdir(), 'auricle-stream-'));

beforeAll(async () => {
  edge = await startFakeEdge();
  engine = await startEmbedded(repository, ['reference-en', 'reference-en-stream']);
  agent = await start(systemClock);
}, 60_000);
afterAll(async () => {
  await agent?.stop();
  await engine?.stop();
  rmSync(folder, { recursive: true, force: true });
}, 30_000);

async function start(clock: Clock, env: Record<string, string> = {}, lines: string[] = []): Promise<Agent> {
  const settings = readSettings({
    ...(await makeEnvironment(folder, edge)),
    AURICLE_MODELS: repository,
    AURICLE_ENGINE_URL: engine.url,
    ...env,
  });
  return startAgent(settings, { write: (line) => lines.push(line), clock });
}

const textIn = (link: FakeLink) =>
  link
    .all('segment')
    .map(({ text }) => text)
    .join(' ');

const dial = (to = agent, ca?: string) =>
  dialLink({
    url: to.url,
    agent: 'agent-1',
    attestation: to.keys.current().token,
    edge,
    model: 'reference-en',
    ...(ca !== undefined && { ca }),
  });

/** Reports a WAV file of 16-bit mono samples. */
const isPlain = (name: string) => {
  const view = new DataView(read(name).buffer);
  return view.getUint16(34, true) === 16 && view.getUint16(22, true) === 1;
};

/** Rate and samples of a WAV file of 16-bit mono PCM with the plainest header. */
function pcmOf(name: string) {
  const bytes = read(name);
  const rate = new DataView(bytes.buffer, bytes.byteOffset).getUint32(24, true);
  return { pcm: bytes.subarray(44), format: { encoding: 'linear16', rate, channels: 1 } as StreamFormat };
}

const wavs = clips.map(({ file }) => file).filter((file) => file.endsWith('.wav') && isPlain(file));

/**
 * Segments without confidences, with times to a step of the network: those depend in their last digits on what a decoder
 * of Opus heard before, of which another agent gets 80 ms.
 */
const told = (link: FakeLink, near = (seconds: number): unknown => seconds) =>
  link.all('segment').map(({ index, text, start, end, words, ending }) => {
    const each = words.map(({ word, start, end }) => [word, near(start), near(end)]);
    return [index, text, near(start), near(end), ending, each];
  });

/** Real windows through a real network with real state (R1, A4, A5, A6). */
describe('live streams with the reference model on the embedded engine', () => {
  it.each(wavs)('%s', async (file) => {
    const { pcm, format } = pcmOf(file);
    const link = await dial();
    await link.open({ model: 'reference-en', format });
    await link.audio(pcm, 3_200);
    await link.end();
    await link.event('final');
    expect(textIn(link)).toBe(textOf(file));
    // Stable words never changed.
    const words = link.all('segment').flatMap((segment) => segment.words.map(({ word }) => word));
    for (const { words: soFar, stable } of link.all('interim')) {
      expect(soFar.slice(0, stable).map(({ word }) => word)).toEqual(words.slice(0, stable));
    }
  });

  it('raw Opus packets, as a phone sends them', async () => {
    const link = await dial();
    await link.open({ model: 'reference-en', format: { encoding: 'opus', rate: 48_000, channels: 1 } });
    let at = 0;
    for (const packet of oggPackets(read('balance.opus')).slice(2)) {
      await link.audioAt(at, packet);
      at += packet.length;
    }
    await link.end();
    await link.event('final');
    expect(textIn(link)).toBe(textOf('balance.opus'));
  });

  const opusClip = read('balance.opus');
  const pause = silenceAfter(opusClip, 50);
  const [opusHead = pause, , ...opusPackets] = oggPackets(opusClip);
  it.each([
    // A recorder that was started again: one logical stream behind the other, a second of silence between them.
    ['ogg-opus', new Uint8Array(Buffer.concat([opusClip, pause, opusClip]))],
    ['webm', liveWebm('A_OPUS', opusHead, [...opusPackets, ...oggPackets(pause), ...opusPackets])],
  ] as const)('R1 U1 %s in pieces, resumed inside its second utterance', async (encoding, bytes) => {
    const format = { encoding, rate: 48_000, channels: 1 } as const;
    const calm = await dial();
    await calm.open({ model: 'reference-en', format });
    await calm.audio(bytes, 500);
    await calm.end();
    const final = await calm.event('final');
    expect(calm.all('segment').map(({ text }) => text)).toEqual([textOf('balance.opus'), textOf('balance.opus')]);

    const first = await dial();
    await first.open({ model: 'reference-en', format });
    await first.audio(bytes.subarray(0, bytes.length - opusClip.length / 3), 500);
    await first.until(() => first.all('interim').some(({ index }) => index === 1));
    const from = first.lastCheckpoint();
    first.drop();
    expect(from).toMatchObject({ index: 1 });
    const second = await dial();
    await second.open({ model: 'reference-en', format, ...(from && { from }) });
    await second.audio(bytes.subarray(from?.position), 500);
    await second.end();
    expect(await second.event('final')).toEqual(final);
    expect([...told(first), ...told(second)]).toEqual(told(calm, (seconds) => expect.closeTo(seconds, 1)));
  });

  it('sequences ended while parked are rebuilt with the same words (A5, A8)', async () => {
    // Any wait is too long for this one.
    const after: Clock['after'] = (ms, run) => systemClock.after(ms === SEQUENCE_PARK_MS ? 0 : ms, run);
    const hasty = await start({ ...systemClock, after });
    try {
      const { pcm, format } = pcmOf('weather.wav');
      const link = await dial(hasty);
      await link.open({ model: 'reference-en', format });
      const page = async () => (await fetch(`${hasty.url}/metrics`)).text();
      const read = async (name: string) =>
        Number(new RegExp(`^auricle_agent_${name} (\\d+)$`, 'm').exec(await page())?.[1]);
      await link.audio(pcm.subarray(0, 64_000), 3_200);
      // All of the first half was recognised once nothing is on its way and nothing has changed.
      let before = 0;
      await expect
        .poll(async () => {
          const [last, now] = [before, await read('stream_windows_total')];
          before = now;
          return now >= 5 && now === last && (await read('stream_steps')) === 0;
        }, patience)
        .toBe(true);
      await link.audio(pcm.subarray(64_000), 3_200);
      await link.end();
      await link.event('final');
      expect(textIn(link)).toBe(textOf('weather.wav'));
      expect(await page()).toMatch(/^auricle_agent_stream_rebuilds_total\{cause="parked"\} [1-9]/m);
    } finally {
      await hasty.stop();
    }
  });
});

/** Process ids of the stream workers of this process. */
const workerPids = () =>
  execFileSync('pgrep', ['-P', String(process.pid), '-f', 'stream/worker.ts'], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map(Number);

describe('R1 live streams in stream workers', () => {
  const { pcm, format } = pcmOf('weather.wav');
  const lines: string[] = [];
  let shared: Agent;
  beforeAll(async () => {
    shared = await start(systemClock, { AURICLE_WORKERS: '2', AURICLE_DRAIN_MS: '0' }, lines);
  }, 60_000);
  afterAll(() => shared?.stop(), 30_000);

  const begin = async (to = shared, ca?: string) => {
    const link = await dial(to, ca);
    await link.open({ model: 'reference-en', format });
    await link.event('ready');
    return link;
  };
  const finish = async (link: FakeLink) => {
    await link.audio(pcm, 3_200);
    await link.end();
    await link.event('final');
    expect(textIn(link)).toBe(textOf('weather.wav'));
  };

  it('carries streams in two processes and reports them as one agent', async () => {
    expect(workerPids()).toHaveLength(2);
    const links = await Promise.all([begin(), begin(), begin()]);
    const page = async () => (await fetch(`${shared.url}/metrics`)).text();
    expect(await page()).toMatch(/^auricle_agent_streams_open 3$/m);
    await Promise.all(links.map(finish));
    await expect.poll(page, patience).toMatch(/^auricle_agent_streams_total\{outcome="ok"\} 3$/m);
    expect(await page()).toMatch(/^auricle_agent_stream_windows_total ([2-9]\d|\d{3,})$/m);
    expect(await page()).toMatch(/^auricle_agent_utterance_seconds_count 3$/m);
  });

  it('keeps the streams of other workers when one is killed, and replaces it', async () => {
    const links = await Promise.all([begin(), begin()]);
    const closed = links.map((link) => new Promise<number>((resolve) => link.socket.once('close', resolve)));
    const [victim = 0] = workerPids();
    process.kill(victim, 'SIGKILL');
    const lost = await Promise.race(closed.map((one, at) => one.then((code) => ({ at, code }))));
    // Never a normal end after a loss.
    expect(lost.code).toBe(1006);
    await finish(links[1 - lost.at] as FakeLink);
    await expect.poll(() => workerPids().filter((pid) => pid !== victim).length, patience).toBe(2);
    expect(lines.join('')).toContain('"event":"worker-lost","count":1');
    await finish(await begin());
  });

  describe('over TLS 1.3', () => {
    const { cert, key } = makeCertificate();
    let secure: Agent;
    beforeAll(async () => {
      const file = (name: string, text: string) => {
        writeFileSync(path.join(folder, name), text);
        return path.join(folder, name);
      };
      const tls = { AURICLE_TLS_CERTIFICATE_FILE: file('tls.crt', cert), AURICLE_TLS_KEY_FILE: file('tls.key', key) };
      secure = await start(systemClock, { ...tls, AURICLE_WORKERS: '2', AURICLE_DRAIN_MS: '0' });
    }, 60_000);
    afterAll(() => secure?.stop(), 30_000);

    it('A21 carries streams in workers and drains them', async () => {
      expect(secure.url).toMatch(/^https:/);
      await finish(await begin(secure, cert));
      const link = await begin(secure, cert);
      const closed = new Promise<number>((resolve) => link.socket.once('close', resolve));
      await secure.stop();
      expect(await closed).toBe(1000);
      expect(link.events.map(({ type }) => type)).toContain('drain');
    });
  });

  it('drains streams when the agent stops, and leaves no process behind', async () => {
    const link = await begin();
    const closed = new Promise<number>((resolve) => link.socket.once('close', resolve));
    await shared.stop();
    expect(await closed).toBe(1000);
    expect(link.events.map(({ type }) => type)).toContain('drain');
    expect(link.all('refusal')).toMatchObject([{ reason: 'pool_busy' }]);
    expect(workerPids).toThrow();
  });
});
