import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CompactSign, compactVerify, decodeJwt, exportJWK, generateKeyPair, importJWK } from 'jose';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { reconnectPause } from '../../../../infra/pool/agent/identity/heartbeat.ts';
import { RECONNECT_MS } from '../../../../infra/pool/agent/settings/limits.ts';
import { type AgentMessage, agentMessage } from '../../../../shared/pool/heartbeat.ts';
import { RECONNECT_MAX_MS } from '../../../../shared/pool/limits.ts';
import { RELEASE_TYPE } from '../../../../shared/registry/release.ts';
import { type Bench, patience, startBench, testDescription } from '../start-agent.ts';

vi.setConfig({ testTimeout: 40_000 });

const welcome = { type: 'welcome', intervalMs: 20 };

/** A roster that keeps what it receives. It answers a hello with `reply`. */
async function startRoster(port = 0, reply = (_hello: AgentMessage): object => welcome) {
  const server = new WebSocketServer({ port, host: '127.0.0.1' });
  await new Promise<void>((resolve) => server.once('listening', () => resolve()));
  const heard: { message: AgentMessage; jws: string; socket: number }[] = [];
  const sockets: WebSocket[] = [];
  const authorization: (string | undefined)[] = [];
  let waiting: { wanted: (message: AgentMessage) => boolean; resolve: (message: AgentMessage) => void }[] = [];
  server.on('connection', (socket, request) => {
    const number = sockets.push(socket) - 1;
    authorization.push(request.headers.authorization);
    socket.on('message', (data) => {
      const jws = String(data);
      const message = agentMessage.parse(decodeJwt(jws));
      heard.push({ message, jws, socket: number });
      if (message.type === 'hello') {
        const answer = JSON.stringify(reply(message));
        socket.send(answer);
        if (answer !== JSON.stringify(welcome)) socket.close(4403);
      }
      waiting = waiting.filter(({ wanted, resolve }) => {
        const found = wanted(message);
        if (found) resolve(message);
        return !found;
      });
    });
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard,
    sockets,
    authorization,
    /** The next message like this, or one that was heard already. */
    hears(wanted: (message: AgentMessage) => boolean): Promise<AgentMessage> {
      const known = heard.find(({ message }) => wanted(message));
      if (known) return Promise.resolve(known.message);
      return new Promise((resolve) => waiting.push({ wanted, resolve }));
    },
    stop: () => {
      for (const socket of sockets) socket.terminate();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

let roster: Awaited<ReturnType<typeof startRoster>>;
let bench: Bench;
async function begin() {
  roster = await startRoster();
  bench = await startBench({ AURICLE_EDGE_URL: roster.url });
}

describe('heartbeat (shared/pool/PROTOCOL.md)', () => {
  afterEach(async () => {
    await bench.stop();
    await roster.stop();
  });

  it('says hello with its attestation, then reports, all signed by the attested key', async () => {
    await begin();
    await roster.hears(({ type }) => type === 'report');
    const [hello, second] = roster.heard;
    expect(roster.authorization).toEqual(['Bearer pool-token']);
    if (hello?.message.type !== 'hello' || second?.message.type !== 'report') throw new Error('order');
    expect(hello.message.description).toMatchObject({
      agent: 'agent-1',
      zone: 'eu',
      endpoint: bench.agent.url,
      suites: [5],
    });
    expect(hello.message.description.models.map(({ name }) => name)).toEqual(['test-en']);
    const runtime = decodeJwt(hello.message.attestation)['x-ms-runtime'] as { keys: { use: string }[]; agent: string };
    expect(runtime.agent).toBe('agent-1');
    const key = await importJWK(runtime.keys.find(({ use }) => use === 'sig') ?? {}, 'ES256');
    for (const { jws } of roster.heard) {
      expect((await compactVerify(jws, key)).protectedHeader).toMatchObject({ alg: 'ES256', kid: 'agent-1' });
    }
    expect([hello.message.at, second.message.at]).toEqual([expect.any(Number), expect.any(Number)]);
    expect(second.message.load).toMatchObject({ busy: 0, draining: false, engineReady: true });
    expect(new Set(roster.heard.map(({ message }) => message.boot)).size).toBe(1);
  });

  it('counts on within a boot, also over a new connection', async () => {
    await begin();
    await roster.hears(({ type }) => type === 'report');
    roster.sockets[0]?.terminate();
    await expect
      .poll(() => roster.heard.some(({ socket, message }) => socket === 1 && message.type === 'report'), patience)
      .toBe(true);
    expect(roster.heard.find(({ socket }) => socket === 1)?.message.type).toBe('hello');
    const numbers = roster.heard.map(({ message }) => message.seq);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it('attests again at once when its hello is stale (C5)', async () => {
    const attestations = new Set<string>();
    roster = await startRoster(0, (hello) => {
      if (hello.type === 'hello') attestations.add(hello.attestation);
      return attestations.size < 2
        ? { type: 'refusal', reason: 'attestation_stale', detail: 'hello of an earlier boot' }
        : welcome;
    });
    bench = await startBench({ AURICLE_EDGE_URL: roster.url });
    await roster.hears(({ type }) => type === 'report');
    expect(roster.heard.map(({ message }) => message.type).slice(0, 3)).toEqual(['hello', 'hello', 'report']);
    expect(new Set(roster.heard.map(({ message }) => message.boot)).size).toBe(1);
    const told = bench.lines.map((line) => JSON.parse(line)).find(({ event }) => event === 'disconnected');
    expect(told).toMatchObject({ reason: 'attestation_stale', detail: 'hello of an earlier boot' });
  });

  it('sends audit events again until they are acknowledged (A21)', async () => {
    await begin();
    const first = await roster.hears(({ type }) => type === 'audit');
    if (first.type !== 'audit') throw new Error('type');
    expect(first.events.map(({ type }) => type)).toEqual(['keys', 'model.revision']);
    roster.sockets[0]?.terminate();
    const again = await roster.hears(({ type, seq }) => type === 'audit' && seq > first.seq);
    if (again.type !== 'audit') throw new Error('type');
    expect(again.events).toEqual(first.events);
    roster.sockets[1]?.send(JSON.stringify({ type: 'ack', seq: again.seq }));
    const after = roster.heard.length;
    await expect.poll(() => roster.heard.length, patience).toBeGreaterThan(after + 3);
    expect(roster.heard.slice(after).filter(({ message }) => message.type === 'audit')).toEqual([]);
  });

  it('obeys an order to drain and says so', async () => {
    await begin();
    await roster.hears(({ type }) => type === 'report');
    roster.sockets[0]?.send(JSON.stringify({ type: 'drain' }));
    await roster.hears((message) => message.type === 'report' && message.load.draining);
    expect((await fetch(`${bench.agent.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${bench.agent.url}/healthz`)).status).toBe(200);
  });

  it('C6 A9 A14 A20: describes device, price and location, reports power and degradation', async () => {
    const gauges = 'nv_gpu_power_usage{gpu_uuid="a"} 560\nnv_gpu_power_limit{gpu_uuid="a"} 700\n';
    const page = createServer((_, response) => void response.end(gauges));
    await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
    roster = await startRoster();
    const env = {
      AURICLE_EDGE_URL: roster.url,
      AURICLE_ENGINE_METRICS_URL: `http://127.0.0.1:${(page.address() as AddressInfo).port}/metrics`,
      ...{ AURICLE_ACCELERATOR: 'gpu', AURICLE_DEVICE: 'h100', AURICLE_PRICE: '4.5', AURICLE_LOCATION: '52.37,-4.9' },
    };
    bench = await startBench(env, { degrader: { note: () => {}, level: () => 2 } });
    const hello = await roster.hears(({ type }) => type === 'hello');
    const report = await roster.hears((message) => message.type === 'report' && message.load.power !== undefined);
    page.close();
    expect(hello).toMatchObject({
      description: { device: 'h100', price: 4.5, location: { latitude: 52.37, longitude: -4.9 } },
    });
    expect(report).toMatchObject({ load: { power: 0.8, degraded: 2 } });
    expect(await (await fetch(`${bench.agent.url}/metrics`)).text()).toContain('auricle_agent_degraded 2\n');
  });

  it('reports when the engine is lost', async () => {
    await begin();
    bench.engine.ready = false;
    await roster.hears((message) => message.type === 'report' && !message.load.engineReady);
    expect((await fetch(`${bench.agent.url}/readyz`)).status).toBe(503);
  });

  it('R14: names the models that the engine failed to load, in reports and readiness', async () => {
    await begin();
    bench.engine.ready = false;
    bench.engine.index = [{ name: 'broken-en', version: '1', state: 'UNAVAILABLE', reason: 'out of memory' }];
    const report = await roster.hears((message) => message.type === 'report' && message.load.failed !== undefined);
    expect(report).toMatchObject({ load: { failed: [{ model: 'broken-en', reason: 'out of memory' }] } });
    const readiness = await fetch(`${bench.agent.url}/readyz`);
    expect([readiness.status, await readiness.text()]).toEqual([
      503,
      'not ready\nfailed to load broken-en: out of memory\n',
    ]);
    expect(bench.lines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ event: 'model-load-failed', model: 'broken-en', detail: 'out of memory' }),
    );
    expect(await (await fetch(`${bench.agent.url}/metrics`)).text()).toContain('auricle_agent_failed_models 1\n');
  });

  it('takes the roster’s release map and confirms its generation at once (C7, T1)', async () => {
    const functions = await generateKeyPair('ES256');
    const keys = { keys: [{ ...(await exportJWK(functions.publicKey)), alg: 'ES256' }] };
    roster = await startRoster();
    bench = await startBench({ AURICLE_EDGE_URL: roster.url, AURICLE_SERVICE_KEYS: JSON.stringify(keys) });
    const first = await roster.hears(({ type }) => type === 'report');
    expect(first).toMatchObject({ release: 0 });
    const map = {
      v: 1,
      generation: 4,
      models: { 'test-en': { stable: `sha256:${'b'.repeat(64)}`, before: testDescription.revision } },
    };
    const release = await new CompactSign(new TextEncoder().encode(JSON.stringify(map)))
      .setProtectedHeader({ alg: 'ES256', typ: RELEASE_TYPE })
      .sign(functions.privateKey);
    roster.sockets[0]?.send(JSON.stringify({ type: 'release', release }));
    await roster.hears((message) => message.type === 'report' && message.release === 4);
  });

  it('sends a last report before it goes', async () => {
    await begin();
    await roster.hears(({ type }) => type === 'report');
    await bench.agent.stop();
    await roster.hears((message) => message.type === 'report' && message.load.draining);
  });
});

describe('log lines about the connection', () => {
  const told = () => bench.lines.map((line) => JSON.parse(line)).filter(({ event }) => /connect|waiting/.test(event));

  it('waits for an absent edge, and logs a loss only after a connection', async () => {
    const place = createServer();
    await new Promise<void>((resolve) => place.listen(0, '127.0.0.1', resolve));
    const { port } = place.address() as AddressInfo;
    await new Promise((resolve) => place.close(resolve));
    bench = await startBench({ AURICLE_EDGE_URL: `http://127.0.0.1:${port}` });
    await expect.poll(told, patience).toMatchObject([{ event: 'waiting', detail: 'waiting for the edge' }]);
    roster = await startRoster(port);
    await expect.poll(() => told().at(-1)?.event, patience).toBe('connected');
    roster.sockets[0]?.terminate();
    await expect
      .poll(() => told().map(({ event }) => event), patience)
      .toEqual(['waiting', 'connected', 'disconnected', 'connected']);
    expect(told()[2].detail).toBe('close code 1006');
    await bench.stop();
    await roster.stop();
  });

  it('says when the edge is there and refuses', async () => {
    const edge = createServer((_, response) => response.writeHead(401).end());
    edge.on('upgrade', (_, socket) => socket.end('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n'));
    await new Promise<void>((resolve) => edge.listen(0, '127.0.0.1', resolve));
    bench = await startBench({ AURICLE_EDGE_URL: `http://127.0.0.1:${(edge.address() as AddressInfo).port}` });
    await expect.poll(told, patience).toMatchObject([{ event: 'disconnected', detail: 'the edge answers 401' }]);
    await bench.stop();
    await new Promise((resolve) => edge.close(resolve));
  });
});

describe('pause before calling again', () => {
  it('doubles from half a second to ten, with jitter on its upper half', () => {
    const first = RECONNECT_MS;
    expect([reconnectPause(0, 0), reconnectPause(0, 1)]).toEqual([first / 2, first]);
    expect(reconnectPause(3, 1)).toBe(first * 8);
    expect(reconnectPause(30, 1)).toBe(RECONNECT_MAX_MS);
  });
});
