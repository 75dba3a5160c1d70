import { describe, expect, it } from 'vitest';
import type { StreamCallAnswer } from '../../../edge/routing/dial-stream.ts';
import { AgentConnection, type AgentListener } from '../../../edge/stream/agent-connection.ts';
import { ok } from '../../../shared/result.ts';

/** A connection whose socket and seal are the test's, and what its listener received. */
function connect() {
  const socket = Object.assign(new EventTarget(), { accept() {}, send() {}, close() {} });
  const openWhole = (body: Uint8Array) => ok([{ plaintext: body, final: false }]);
  const received: string[] = [];
  const listener: AgentListener = {
    onEvent: (_, event) => void received.push(event.type),
    onLost: (_, { detail }) => void received.push(`lost: ${detail}`),
    onWritable: () => {},
    onError: (error) => void received.push(String(error)),
  };
  const answer = { socket, opener: { openWhole } } as unknown as StreamCallAnswer;
  const connection = new AgentConnection('a-0', answer, listener, () => 0);
  const send = (event: object) => {
    const { buffer: data } = new TextEncoder().encode(JSON.stringify(event));
    socket.dispatchEvent(new MessageEvent('message', { data }));
  };
  const close = () => void socket.dispatchEvent(new CloseEvent('close', { code: 1006 }));
  return { connection, received, send, close };
}

const ready = { type: 'ready', agent: 'a-0', model: 'm', revision: 'r', language: 'en' };

describe('R1 a connection to an agent', () => {
  it('reports a close between `ready` and `start` at `start`', async () => {
    const { connection, received, send, close } = connect();
    send(ready);
    expect(await connection.ready).toMatchObject({ ok: true });
    close();
    expect(received).toEqual([]);
    connection.start();
    expect(received).toEqual(['lost: closed by the agent: 1006']);
  });

  it('delivers events that came with `ready` in their order', async () => {
    const { connection, received, send, close } = connect();
    send(ready);
    await connection.ready;
    send({ type: 'heard', position: 0, time: 0 });
    send({ type: 'drain' });
    connection.start();
    await new Promise((resolve) => queueMicrotask(() => resolve(undefined)));
    close();
    expect(received).toEqual(['heard', 'drain', 'lost: closed by the agent: 1006']);
  });

  it('reports nothing after the edge has closed it', async () => {
    const { connection, received, send, close } = connect();
    send(ready);
    await connection.ready;
    connection.close();
    close();
    connection.start();
    expect(received).toEqual([]);
  });
});
