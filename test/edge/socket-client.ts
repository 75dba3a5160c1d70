// A client's end of a WebSocket as a test sees it: every message in text, and the end.
import { eventually } from '../fake/stream-agent.ts';

export type Message = { readonly type: string; readonly [name: string]: unknown };

export class SocketClient {
  readonly messages: Message[] = [];
  /** Frames that were not text; official clients of OpenAI break on them. */
  binary = 0;
  readonly status: number;
  readonly headers: Headers;
  readonly protocol: string | null;
  ended: { readonly code: number; readonly reason: string } | undefined;
  /** Answers the close frame of the edge, as every client does whose network works. */
  answers = true;
  readonly #socket: RuntimeSocket;

  protected constructor(answer: Response) {
    this.status = answer.status;
    this.headers = answer.headers;
    this.protocol = answer.headers.get('sec-websocket-protocol');
    this.#socket = answer.webSocket as RuntimeSocket;
    this.#socket.binaryType = 'arraybuffer';
    this.#socket.addEventListener('message', ({ data }) => {
      if (typeof data === 'string') this.messages.push(JSON.parse(data) as Message);
      else this.binary += 1;
    });
    this.#socket.addEventListener('close', ({ code, reason }) => {
      this.ended = { code, reason };
      if (this.answers) this.close();
    });
    this.#socket.accept();
  }

  send(message: object | string | Uint8Array): this {
    const plain = typeof message === 'string' || message instanceof Uint8Array;
    this.#socket.send(plain ? message : JSON.stringify(message));
    return this;
  }

  /** Resolves with the first message of a type that `which` accepts. */
  waitFor(type: string, which: (message: Message) => boolean = () => true): Promise<Message> {
    return eventually(() => this.messages.find((message) => message.type === type && which(message)));
  }

  all(type: string): Message[] {
    return this.messages.filter((message) => message.type === type);
  }

  get types(): string[] {
    return this.messages.map(({ type }) => type);
  }

  end(): Promise<{ code: number; reason: string }> {
    return eventually(() => this.ended);
  }

  /** Breaks the connection as a lost network does. */
  drop(): void {
    this.#socket.close(4000, 'dropped');
  }

  close(code = 1000): void {
    this.#socket.close(code, '');
  }
}
