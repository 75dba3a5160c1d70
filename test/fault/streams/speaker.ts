// Client of `/v1/stream`: the one for apps, on sockets that tests can cut.
import { WebSocket } from 'ws';
import type { StreamEvent } from '../../../edge/client/events.ts';
import { type LiveStream, openStream } from '../../../edge/client/stream.ts';
import type { StreamFormat } from '../../../shared/stream/format.ts';
import type { Shared } from '../../stack/running.ts';

type Segment = Extract<StreamEvent, { type: 'segment' }>;

export interface Speaker {
  readonly stream: LiveStream;
  readonly heard: readonly StreamEvent[];
  /** Sends everything in tenths of a second, with back-pressure. */
  send(audio: Uint8Array): Promise<void>;
  /** Returns the first matching event, past or future. Rejects when the stream ends first. */
  until(found: (event: StreamEvent) => boolean): Promise<StreamEvent>;
  /** Breaks the connection silently, like a phone that loses its network. */
  cut(): void;
  /** Connections so far. */
  connections(): number;
  /** Ends the stream and returns its segments. */
  finish(): Promise<Segment[]>;
}

const FORMAT: StreamFormat = { encoding: 'linear16', rate: 16_000, channels: 1 };
const FRAME_BYTES = 3_200;

export function speak({ stack }: Pick<Shared, 'stack'>, format: StreamFormat = FORMAT, token = stack.token): Speaker {
  const sockets: WebSocket[] = [];
  class Cuttable extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols, { perMessageDeflate: false });
      sockets.push(this);
    }
  }
  const stream = openStream({
    url: `${stack.url}/v1/stream`,
    token,
    model: 'reference-en',
    format,
    WebSocket: Cuttable as never,
  });
  const heard: StreamEvent[] = [];
  const waiting = new Set<{
    found: (event: StreamEvent) => boolean;
    resolve: (event: StreamEvent) => void;
    reject: (why: unknown) => void;
  }>();
  const reading = (async () => {
    for await (const event of stream.events) {
      heard.push(event);
      for (const one of waiting) {
        if (!one.found(event)) continue;
        waiting.delete(one);
        one.resolve(event);
      }
    }
    for (const { reject } of waiting) reject(new Error('the stream ended before it was heard'));
  })();
  reading.catch((why) => {
    for (const { reject } of waiting) reject(why);
  });
  return {
    stream,
    heard,
    async send(audio) {
      if (format.encoding === 'opus') return stream.send(audio);
      for (let at = 0; at < audio.length; at += FRAME_BYTES) await stream.send(audio.subarray(at, at + FRAME_BYTES));
    },
    until(found) {
      const known = heard.find(found);
      return known ? Promise.resolve(known) : new Promise((resolve, reject) => waiting.add({ found, resolve, reject }));
    },
    cut: () => sockets.at(-1)?.terminate(),
    connections: () => sockets.length,
    async finish() {
      await stream.end();
      await reading;
      return heard.filter((event): event is Segment => event.type === 'segment');
    },
  };
}
