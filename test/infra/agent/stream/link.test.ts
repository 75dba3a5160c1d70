import { describe, expect, it } from 'vitest';
import { KEEPALIVE_MS } from '../../../../infra/pool/agent/backend.ts';
import { nodeAead } from '../../../../infra/pool/agent/identity/aead.ts';
import type { Ticket } from '../../../../infra/pool/agent/request/ticket.ts';
import { SocketLink, STREAM_QUEUE_BYTES } from '../../../../infra/pool/agent/stream/link.ts';
import { STREAM_KEEPALIVE_MS, serveStream } from '../../../../infra/pool/agent/stream/stream.ts';
import { ANSWER_SILENCE_MS } from '../../../../shared/pool/limits.ts';
import type { Refusal } from '../../../../shared/refusal.ts';
import { createOpener, createSealer } from '../../../../shared/seal/records.ts';
import { type LinkEvent, linkEvent } from '../../../../shared/stream/link.ts';
import { encodeControl } from '../../../../shared/stream/link-record.ts';
import { createFakeClock, settle } from '../../../fake/clock.ts';
import { createSequenceEngine } from '../../../fake/sequence-engine.ts';
import { FakeSocket } from '../../../fake/socket.ts';
import { openControl } from '../../../fake/stream-link.ts';
import { makeLiveParts } from '../../../fake/stream-session.ts';
import { liveModel } from './start-stream.ts';

const key = new Uint8Array(64).fill(3);
const interim = (text: string): LinkEvent => ({
  type: 'interim',
  index: 0,
  start: 0,
  end: 1,
  text,
  words: [],
  stable: 0,
  confidence: 1,
});

async function scene() {
  const socket = new FakeSocket();
  const time = createFakeClock();
  const [sealer, opener, sender, reader] = await Promise.all([
    createSealer(key, 5, nodeAead),
    createOpener(key, 5, nodeAead),
    createSealer(key, 5, nodeAead),
    createOpener(key, 5, nodeAead),
  ]);
  const refusals: Refusal[] = [];
  const records: number[] = [];
  let gone = 0;
  const control = { gate: Promise.resolve() };
  const link = new SocketLink({
    socket,
    opener,
    sealer,
    clock: time.clock,
    keepaliveMs: STREAM_KEEPALIVE_MS,
    async onRecord(plaintext) {
      await control.gate;
      records.push(plaintext.length);
    },
    onBroken: (refusal) => refusals.push(refusal),
    onGone: () => {
      gone++;
    },
    onBug(error) {
      throw error;
    },
  });
  return {
    socket,
    time,
    link,
    refusals,
    records,
    control,
    gone: () => gone,
    async receive(bytes: number) {
      socket.hear(Buffer.from(await sender.seal(new Uint8Array(bytes), false)));
      await settle();
    },
    async events(): Promise<LinkEvent['type'][]> {
      await settle();
      const types: LinkEvent['type'][] = [];
      for (const sent of socket.sent.splice(0)) {
        for await (const record of reader.open(sent)) {
          if (!record.ok) throw new Error(record.refusal.detail);
          types.push(linkEvent.parse(JSON.parse(new TextDecoder().decode(record.value.plaintext))).type);
        }
      }
      return types;
    },
  };
}

describe('the link of a stream', () => {
  it('MUST 61: sends a keepalive every 2 s and pings a silent edge', async () => {
    const { time, socket, events } = await scene();
    for (let i = 0; i < 4; i++) {
      await time.advance(STREAM_KEEPALIVE_MS);
      expect(await events()).toContain('keepalive');
      socket.pong();
    }
    expect(socket.pings).toBeGreaterThanOrEqual(4);
    expect(socket.readyState).toBe(1);
  });

  it('gives up an edge that says nothing any more, not even to a ping', async () => {
    const { time, socket, gone } = await scene();
    await time.advance(ANSWER_SILENCE_MS + STREAM_KEEPALIVE_MS);
    expect([socket.readyState, gone()]).toEqual([3, 1]);
    expect(time.timers()).toBe(0);
  });

  it('does not time out a peer with unread messages', async () => {
    const { time, socket, control, receive } = await scene();
    control.gate = new Promise(() => {});
    for (let i = 0; i < 10; i++) await receive(60_000);
    expect(socket.paused).toBe(true);
    await time.advance(ANSWER_SILENCE_MS * 3);
    expect(socket.readyState).toBe(1);
  });

  it('stops reading while too much waits, and goes on later, with nothing lost', async () => {
    const { socket, control, records, receive } = await scene();
    let open = () => {};
    control.gate = new Promise((resolve) => {
      open = resolve;
    });
    let count = 0;
    while (!socket.paused) {
      await receive(50_000);
      count++;
    }
    expect(count * 50_000).toBeLessThanOrEqual(STREAM_QUEUE_BYTES + 100_000);
    open();
    for (let i = 0; i < 50; i++) await settle();
    expect(socket.paused).toBe(false);
    expect(records).toEqual(Array(count).fill(50_000));
  });

  it('knows when the edge does not read, and when it does again', async () => {
    const { socket, link, events } = await scene();
    socket.clogged = true;
    while (!link.congested()) link.send(interim('word '.repeat(2_000)));
    let flows = false;
    void link.flowing().then(() => {
      flows = true;
    });
    await settle();
    expect(flows).toBe(false);
    socket.flow();
    await settle();
    expect([flows, link.congested()]).toEqual([true, false]);
    expect((await events()).length).toBeGreaterThan(0);
  });

  it('does not wait for a closed socket', async () => {
    const { socket, link } = await scene();
    socket.clogged = true;
    while (!link.congested()) link.send(interim('word '.repeat(2_000)));
    const flowing = link.flowing();
    socket.gone();
    await flowing;
    expect(link.congested()).toBe(false);
  });

  it('says nothing after its last event, and closes behind it', async () => {
    const { socket, link, events } = await scene();
    link.send(interim('a'));
    link.send({ type: 'refusal', reason: 'pool_busy' });
    link.send(interim('b'));
    expect(await events()).toEqual(['interim', 'refusal']);
    expect(socket.closedWith).toBe(1000);
  });
});

describe('a stream of an agent in production', () => {
  it('MUST 61: receives stream keepalives every 2 s, more often than unary ones', async () => {
    const socket = new FakeSocket();
    const time = createFakeClock();
    const [sealer, opener, sender, reader] = await Promise.all([
      createSealer(key, 5, nodeAead),
      createOpener(key, 5, nodeAead),
      createSealer(key, 5, nodeAead),
      createOpener(key, 5, nodeAead),
    ]);
    const { live } = makeLiveParts(createSequenceEngine(), time.clock);
    const outcome = serveStream({
      context: {
        agent: 'agent-1',
        keepaliveMs: KEEPALIVE_MS,
        live,
        log: () => {},
        onUtterance: () => {},
      },
      ticket: { class: 'default', model: 'test-en', deadlineMs: 60_000 } as Ticket,
      model: liveModel(),
      sealer,
      opener,
      socket,
      stopped: new AbortController().signal,
      draining: new AbortController().signal,
    });
    socket.hear(Buffer.from(await sender.seal(encodeControl(openControl()), false)));
    const news = async () => {
      const types: LinkEvent['type'][] = [];
      for (const sent of socket.sent.splice(0)) {
        const opened = await reader.openWhole(sent);
        if (!opened.ok) throw new Error(opened.refusal.detail);
        for (const { plaintext } of opened.value) types.push(JSON.parse(new TextDecoder().decode(plaintext)).type);
      }
      return types;
    };
    await expect.poll(news).toContain('ready');
    for (let i = 0; i < 5; i++) {
      await time.advance(2_000);
      await expect.poll(news).toContain('keepalive');
      socket.pong();
    }
    socket.gone();
    await outcome;
  });
});
