// A client of /v1/stream as a test sees it: every message, and the end.
import { makeToken } from './authority.ts';
import { ask } from './network.ts';
import { eventually } from './stream-double.ts';

export type Message = { readonly type: string; readonly [name: string]: unknown };

const encoder = new TextEncoder();

/** 1,000 bytes of it are a second. */
export const slow = { encoding: 'mulaw', rate: 8_000, channels: 1 } as const;

export class StreamClient {
  readonly messages: Message[] = [];
  readonly status: number;
  readonly protocol: string | null;
  ended: { readonly code: number; readonly reason: string } | undefined;
  position = 0;
  readonly #socket: RuntimeSocket;

  private constructor(answer: Response) {
    this.status = answer.status;
    this.protocol = answer.headers.get('sec-websocket-protocol');
    this.#socket = answer.webSocket as RuntimeSocket;
    this.#socket.binaryType = 'arraybuffer';
    this.#socket.addEventListener('message', ({ data }) => {
      this.messages.push(JSON.parse(String(data)) as Message);
    });
    this.#socket.addEventListener('close', ({ code, reason }) => {
      this.ended = { code, reason };
    });
    this.#socket.accept();
  }

  static of(answer: Response): StreamClient {
    return new StreamClient(answer);
  }

  /** Connects, with a token of the tenant `acme` unless told otherwise. */
  static async connect(query = '', claims: Record<string, unknown> = {}, headers: Record<string, string> = {}) {
    const authorization = `Bearer ${await makeToken(claims)}`;
    const answer = await ask(`/v1/stream${query}`, { headers: { upgrade: 'websocket', authorization, ...headers } });
    if (!answer.webSocket) throw new Error(`${answer.status} ${await answer.text()}`);
    return new StreamClient(answer);
  }

  say(message: object | string | Uint8Array): this {
    const plain = typeof message === 'string' || message instanceof Uint8Array;
    this.#socket.send(plain ? message : JSON.stringify(message));
    return this;
  }

  start(model: string, change: object = {}): this {
    return this.say({ type: 'start', v: 1, model, format: slow, ...change });
  }

  /** Audio of the double's kind; at the position that comes next unless told. */
  speak(text: string, position = this.position): this {
    const message = new Uint8Array(6 + text.length);
    new DataView(message.buffer).setUint32(2, position);
    message.set(encoder.encode(text), 6);
    this.say(message);
    this.position = position + text.length;
    return this;
  }

  /** The first message of a type, or one that `which` finds. */
  heard(type: string, which: (message: Message) => boolean = () => true): Promise<Message> {
    return eventually(() => this.messages.find((message) => message.type === type && which(message)));
  }

  all(type: string): Message[] {
    return this.messages.filter((message) => message.type === type);
  }

  /** What was said in all, segment after segment. */
  get transcript(): string {
    return this.all('segment')
      .map(({ text }) => text)
      .join('|');
  }

  /** Texts of the segments that came before the first message of a type. */
  heardBefore(type: string): unknown[] {
    const at = this.messages.findIndex((message) => message.type === type);
    return this.messages.slice(0, at).flatMap((message) => (message.type === 'segment' ? [message.text] : []));
  }

  end(): Promise<{ code: number; reason: string }> {
    return eventually(() => this.ended);
  }

  /** Newest token it was given. */
  get resume(): string {
    return String(this.all('ack').at(-1)?.resume);
  }

  /** Goes away as a network does that breaks. */
  drop(): void {
    this.#socket.close(4000, 'dropped');
  }

  close(code = 1000): void {
    this.#socket.close(code, '');
  }
}
