// A client of /v1/stream as a test sees it.

import { ask } from '../fake/network.ts';
import { makeToken } from './authority.ts';
import { SocketClient } from './socket-client.ts';

export type { Message } from './socket-client.ts';

const encoder = new TextEncoder();

/** 1,000 bytes of it are a second. */
export const slow = { encoding: 'mulaw', rate: 8_000, channels: 1 } as const;

export class StreamClient extends SocketClient {
  position = 0;

  static of(answer: Response): StreamClient {
    return new StreamClient(answer);
  }

  /** Connects, with a token of the tenant `acme` by default. */
  static async connect(query = '', claims: Record<string, unknown> = {}, headers: Record<string, string> = {}) {
    const authorization = `Bearer ${await makeToken(claims)}`;
    const answer = await ask(`/v1/stream${query}`, { headers: { upgrade: 'websocket', authorization, ...headers } });
    if (!answer.webSocket) throw new Error(`${answer.status} ${await answer.text()}`);
    return new StreamClient(answer);
  }

  start(model: string, change: object = {}): this {
    return this.send({ type: 'start', v: 1, model, format: slow, ...change });
  }

  /** Audio in letters; by default at the next position. */
  speak(text: string, position = this.position): this {
    const message = new Uint8Array(6 + text.length);
    new DataView(message.buffer).setUint32(2, position);
    message.set(encoder.encode(text), 6);
    this.send(message);
    this.position = position + text.length;
    return this;
  }

  /** Transcript of all segments in order. */
  get transcript(): string {
    return this.all('segment')
      .map(({ text }) => text)
      .join('|');
  }

  /** Texts of the segments that came before the first message of a type. */
  receivedBefore(type: string): unknown[] {
    const at = this.messages.findIndex((message) => message.type === type);
    return this.messages.slice(0, at).flatMap((message) => (message.type === 'segment' ? [message.text] : []));
  }

  /** Newest resumption token. */
  get resume(): string {
    return String(this.all('ack').at(-1)?.resume);
  }
}
