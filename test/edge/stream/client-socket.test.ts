import { describe, expect, it } from 'vitest';
import type { ClientCommand, LiveProtocol, SessionEvent } from '../../../edge/protocol/live-protocol.ts';
import { ClientSender, STREAM_BUFFERED_EVENTS_MAX } from '../../../edge/stream/client-sender.ts';
import { ClientSocket } from '../../../edge/stream/client-socket.ts';
import type { Handover } from '../../../edge/stream/handover.ts';
import { STREAM_EVENT_BYTES, STREAM_REQUEST_BYTES, STREAM_UNREAD_BYTES } from '../../../edge/stream/unread-limit.ts';

/** A client that never reads, with a protocol that renders each event as so many bytes. */
function connect(bytes: number, acknowledges = false, hear: LiveProtocol['receive'] = () => []) {
  let sent = 0;
  let receive: (event: { data: string }) => void = () => {};
  const steps: ClientCommand[] = [];
  const socket = {
    send: ({ length }: string) => {
      sent += length;
    },
    addEventListener: (type: string, listener: typeof receive) => {
      if (type === 'message') receive = listener;
    },
    accept() {},
    close() {},
  };
  const protocol = {
    acknowledges,
    open: () => [],
    receive: hear,
    render: () => ['x'.repeat(bytes)],
    close: () => ({ frames: [], code: 1000, reason: '' }),
  };
  const handler = { onCommand: (step: ClientCommand) => void steps.push(step), onDisconnect() {}, onError() {} };
  const made = new ClientSocket({
    socket: socket as never,
    protocol: protocol as unknown as LiveProtocol,
    handover: { claims: {} } as unknown as Handover,
    handler,
    closing: { add() {}, delete() {} },
    now: () => 0,
  });
  made.open('s', 0);
  return { client: made, sent: () => sent, steps, receive: (data: string) => receive({ data }) };
}

const word = (type: 'interim' | 'segment', at: number) => ({ type, index: 0, start: at, end: at + 1 }) as SessionEvent;
const burst = STREAM_UNREAD_BYTES;

describe('§3-18 unread events of a client that does not count', () => {
  it('drops interims beyond the allowance, and sends segments', () => {
    const { client, sent, steps } = connect(20_000);
    const seconds = 400;
    for (let at = 0; at < seconds; at++) {
      for (let turn = 0; turn < 4; turn++) client.send(word('interim', at));
    }
    const most = burst + seconds * STREAM_EVENT_BYTES;
    expect(sent()).toBeGreaterThan(most - 100_000);
    expect(sent()).toBeLessThanOrEqual(most + 20_000);
    const before = sent();
    client.send(word('segment', seconds));
    expect(sent()).toBe(before + 20_000);
    expect(steps).toEqual([]);
  });

  it('drops nothing of an hour of fast speech', () => {
    const { client, sent } = connect(1_500);
    for (let at = 0; at < 3_600; at++) for (let turn = 0; turn < 3; turn++) client.send(word('interim', at));
    expect(sent()).toBe(3_600 * 3 * 1_500);
  });

  it('refuses reader_slow at twice the allowance of segments', () => {
    const { client, sent, steps } = connect(20_000);
    for (let turn = 0; steps.length === 0 && turn < 1_000; turn++) client.send(word('segment', 0));
    expect(steps).toMatchObject([{ type: 'close', refusal: { reason: 'reader_slow' } }]);
    expect(sent()).toBeLessThanOrEqual(2 * (burst + STREAM_EVENT_BYTES) + 20_000);
  });
});

describe('§3-18 requests of a client', () => {
  const answered = (seen?: (asked: number) => number): LiveProtocol['receive'] => {
    let asked = 0;
    return () => {
      asked++;
      return [
        { type: 'alive', ...(seen && { seen: seen(asked) }) },
        { type: 'reply', frames: ['pong'] },
      ];
    };
  };

  it.each([
    ['does not count', undefined],
    ['counts without reading', (asked: number) => asked - 1],
  ])('refuses a client that %s and only sends requests', (_, seen) => {
    const { steps, sent, receive } = connect(0, true, answered(seen));
    const closed = () => steps.find(({ type }) => type === 'close');
    for (let turn = 0; !closed() && turn < 100_000; turn++) receive('ping');
    expect(closed()).toMatchObject({ refusal: { reason: 'reader_slow' } });
    expect(sent() / 'pong'.length).toBeLessThanOrEqual(burst / STREAM_REQUEST_BYTES);
  });

  it('accepts a ping with each audio message', () => {
    const { steps, receive } = connect(0, true, () => [
      { type: 'audio', audio: new Uint8Array(3_200) },
      { type: 'alive' },
      { type: 'reply', frames: ['pong'] },
    ]);
    for (let turn = 0; turn < 36_000; turn++) receive('both');
    expect(steps.some(({ type }) => type === 'close')).toBe(false);
  });

  it('charges text by its length, and audio in it not at all', () => {
    const heard: number[] = [];
    const hear: LiveProtocol['receive'] = (message) => {
      heard.push(message.length);
      return [{ type: 'alive' }];
    };
    const { steps, receive } = connect(0, false, hear);
    for (let turn = 0; turn < 1_000 && steps.at(-1)?.type !== 'close'; turn++) receive('x'.repeat(32_768));
    expect(steps.at(-1)).toMatchObject({ type: 'close', refusal: { reason: 'reader_slow' } });
    expect(heard).toHaveLength(burst / 32_768 + 1);

    const sound = connect(0, false, () => [{ type: 'audio', audio: new Uint8Array(3_200) }]);
    for (let turn = 0; turn < 4_000; turn++) sound.receive('x'.repeat(4_400));
    expect(sound.steps.some(({ type }) => type === 'close')).toBe(false);
    // A byte of audio does not pay for a megabyte of text.
    const hollow = connect(0, false, () => [{ type: 'audio', audio: Uint8Array.of(1) }]);
    for (let turn = 0; turn < 2; turn++) hollow.receive('x'.repeat(1_000_000));
    expect(hollow.steps.at(-1)).toMatchObject({ type: 'close', refusal: { reason: 'reader_slow' } });
  });

  it('refuses a client that has seen more than was sent', () => {
    const { steps, receive } = connect(
      0,
      true,
      answered(() => 9e15),
    );
    receive('ping');
    expect(steps).toMatchObject([{ type: 'close', refusal: { reason: 'frame_invalid' } }]);
  });
});

describe('MUST 34 events for a disconnected client', () => {
  it('are buffered up to a limit, with the last interim only', () => {
    const sender = new ClientSender();
    const most = STREAM_BUFFERED_EVENTS_MAX;
    for (let at = 0; at < most - 1; at++) expect(sender.send({ type: 'speech_started', at })).toBe(true);
    for (let at = 0; at < 3; at++) expect(sender.send(word('interim', at))).toBe(true);
    expect(sender.send({ type: 'speech_started', at: most })).toBe(false);
    const told: SessionEvent[] = [];
    sender.connect({ send: (event: SessionEvent) => told.push(event) } as unknown as ClientSocket);
    sender.replay(undefined);
    expect(told).toHaveLength(most + 1);
    expect(told.filter(({ type }) => type === 'interim')).toEqual([word('interim', 2)]);
  });
});
