// A client of a live dialect as a test sees it: the handshake, every message, and the end.
import { ask, startAgent } from './network.ts';
import { eventually, type Habits, habitsOf, listen } from './stream-double.ts';

export type Message = { readonly type: string; readonly [name: string]: unknown };

/** An agent with ears, of a model that nobody else has. */
export async function startListener(habits: Partial<Habits> = {}) {
  const name = `live-${crypto.randomUUID().slice(0, 8)}`;
  const agent = await startAgent(name, { live: true });
  return { name, agent, talks: listen(agent, habitsOf(habits)) };
}

/** The same, ready only once it is let: what comes before has to be kept. */
export async function startLateListener() {
  let isLet = false;
  const before: Habits['before'] = (talk, said) => {
    if ('kind' in said || said.type !== 'open') return false;
    // Only in its own turn may the agent speak to its socket.
    const look = () => void (isLet ? talk.ready(said.model) : setTimeout(look, 1));
    look();
    return false;
  };
  const listener = await startListener({ ready: false, before });
  return {
    ...listener,
    letReady: () => {
      isLet = true;
    },
  };
}

export class LiveClient {
  readonly messages: Message[] = [];
  /** Frames that were not text; official clients of OpenAI break on them. */
  binary = 0;
  readonly protocol: string | null;
  readonly headers: Headers;
  ended: { readonly code: number; readonly reason: string } | undefined;
  readonly #socket: RuntimeSocket;

  private constructor(answer: Response) {
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
    });
    this.#socket.accept();
  }

  /** Upgrades; throws with the answer when there is no socket. */
  static async connect(path: string, headers: Record<string, string>): Promise<LiveClient> {
    const answer = await ask(path, { headers: { upgrade: 'websocket', ...headers } });
    if (!answer.webSocket) throw new Error(`${answer.status} ${await answer.text()}`);
    return new LiveClient(answer);
  }

  say(message: object | string | Uint8Array): this {
    const plain = typeof message === 'string' || message instanceof Uint8Array;
    this.#socket.send(plain ? message : JSON.stringify(message));
    return this;
  }

  heard(type: string, which: (message: Message) => boolean = () => true): Promise<Message> {
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

  /** Goes away as a network does that breaks. */
  drop(): void {
    this.#socket.close(4000, 'dropped');
  }

  close(): void {
    this.#socket.close(1000, '');
  }
}
