import type { IncomingMessage } from 'node:http';
import WebSocket from 'ws';
import { type Checkpoint, type LinkControl, type LinkEvent, linkEvent } from '../../shared/stream/link.ts';
import { encodeAudio, encodeControl } from '../../shared/stream/link-record.ts';
import { type Call, sealCall } from './edge.ts';

export interface LinkRequest extends Call {
  readonly model?: string;
  /** Certificate of the agent, which is no public one. */
  readonly ca?: string;
}

export type FakeLink = Awaited<ReturnType<typeof dialLink>>;
type Open = Extract<LinkControl, { type: 'open' }>;
type EventOf<T extends LinkEvent['type']> = Extract<LinkEvent, { type: T }>;

export const openControl = (over: Partial<Open> = {}): Open => ({
  type: 'open',
  v: 1,
  task: 'stream',
  model: 'test-en',
  format: { encoding: 'linear16', rate: 16_000, channels: 1 },
  options: { interim: true, endpointingMs: 600 },
  ...over,
});

export class PlainRefusal extends Error {
  readonly status: number;
  readonly reason: string;
  constructor(status: number, reason: string) {
    super(`${status} ${reason}`);
    this.status = status;
    this.reason = reason;
  }
}

async function refusalOf(incoming: IncomingMessage): Promise<PlainRefusal> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part);
  return new PlainRefusal(incoming.statusCode ?? 0, JSON.parse(Buffer.concat(parts).toString()).reason);
}

/** Dials an agent as a session of the edge does. Rejects with `PlainRefusal` when the agent answers in plain HTTP. */
export async function dialLink(request: LinkRequest) {
  const asked = { class: 'realtime', model: request.model ?? 'test-en' };
  const { headers, sealer, opener } = await sealCall(request, asked);
  const socket = new WebSocket(`${request.url.replace(/^http/, 'ws')}/v1/stream`, {
    headers,
    perMessageDeflate: false,
    ...(request.ca !== undefined && { ca: request.ca }),
  });
  const events: LinkEvent[] = [];
  let waiting: (() => void)[] = [];
  let closed: number | undefined;
  let position = 0;
  const tell = () => {
    const told = waiting;
    waiting = [];
    for (const one of told) one();
  };
  let reading: Promise<void> = Promise.resolve();
  socket.on('message', (data: Buffer) => {
    reading = reading.then(async () => {
      for await (const record of opener.open(data)) {
        if (!record.ok) throw new Error(`answer: ${record.refusal.detail}`);
        events.push(linkEvent.parse(JSON.parse(new TextDecoder().decode(record.value.plaintext))));
        tell();
      }
    });
  });
  socket.on('close', (code) => {
    void reading.then(() => {
      closed = code;
      tell();
    });
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('unexpected-response', (_outgoing, incoming) => void refusalOf(incoming).then(reject));
    socket.once('error', reject);
  });
  socket.on('error', () => {});

  /** Sealing takes turns, so messages are sealed one after the other. */
  let sending: Promise<void> = Promise.resolve();
  const send = (plaintext: Uint8Array, final = false): Promise<void> => {
    sending = sending.then(async () => {
      const record = await sealer.seal(plaintext, final);
      if (socket.readyState === WebSocket.OPEN) socket.send(record);
    });
    return sending;
  };
  const until = async (done: () => boolean): Promise<void> => {
    while (!done()) {
      if (closed !== undefined) throw new Error(`closed with ${closed} after ${JSON.stringify(events.at(-1))}`);
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };
  const all = <T extends LinkEvent['type']>(type: T) =>
    events.filter((event): event is EventOf<T> => event.type === type);

  return {
    socket,
    events,
    all,
    send,
    open(over: Partial<Open> = {}) {
      position = over.from?.position ?? 0;
      return send(encodeControl(openControl(over)));
    },
    control: (control: LinkControl) => send(encodeControl(control)),
    /** Audio behind what was sent before, in chunks of `bytes`. */
    async audio(audio: Uint8Array, bytes = 3_200) {
      for (let at = 0; at < audio.length; at += bytes) {
        const chunk = audio.subarray(at, at + bytes);
        void send(encodeAudio(position, chunk));
        position += chunk.length;
      }
      await sending;
    },
    /** Sends at an arbitrary position. */
    audioAt(at: number, audio: Uint8Array) {
      position = at + audio.length;
      return send(encodeAudio(at, audio));
    },
    position: () => position,
    end: () => send(encodeControl({ type: 'end' }), true),
    /** The first such event, now or later. */
    async event<T extends LinkEvent['type']>(type: T): Promise<EventOf<T>> {
      await until(() => all(type).length > 0);
      return all(type)[0] as EventOf<T>;
    },
    until,
    /** The code the socket was closed with. */
    async closed(): Promise<number> {
      while (closed === undefined) await new Promise<void>((resolve) => waiting.push(resolve));
      return closed;
    },
    lastCheckpoint(): Checkpoint | undefined {
      const last = all('checkpoint').at(-1);
      if (!last) return undefined;
      const { type: _, ...rest } = last;
      return rest;
    },
    drop: () => socket.terminate(),
  };
}
