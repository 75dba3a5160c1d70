// An agent of live streams. It joins the roster like any other, and "recognises" audio whose bytes are letters: a word
// ends at a space, an utterance at a full stop. The transcript therefore equals the sent audio, and shows each sample
// that is lost, doubled or misplaced.
import { vi } from 'vitest';
import type { Sealer } from '../../shared/seal/records.ts';
import { bytesPerSecond } from '../../shared/stream/format.ts';
import type { Checkpoint, LinkControl, LinkEvent } from '../../shared/stream/link.ts';
import { decodeLinkRecord } from '../../shared/stream/link-record.ts';
import type { FakeAgent } from './agent.ts';

type Open = Extract<LinkControl, { type: 'open' }>;
type Received = { readonly kind: 'audio'; readonly position: number; readonly text: string } | LinkControl;

export interface Habits {
  /** Acknowledges its position after each message. */
  acknowledges: boolean;
  /** Sends a checkpoint after each segment. */
  checkpoints: boolean;
  interims: boolean;
  /** Answers `end` with `final`. */
  finals: boolean;
  /** Answers `open` with `ready`. */
  ready: boolean;
  /** Receives each message before it takes effect; returns `true` to suppress it. */
  before: ((stream: AgentStream, message: Received) => boolean | undefined) | undefined;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('latin1');

/** One stream at an agent. */
export class AgentStream {
  readonly ticket: Record<string, unknown>;
  readonly messages: Received[] = [];
  readonly events: LinkEvent[] = [];
  /** Indexes of messages that came in a record with the final flag. */
  readonly finals: number[] = [];
  readonly habits: Habits;
  readonly agent: string;
  opened: Open | undefined;
  closed: { code: number } | undefined;
  readonly #socket: RuntimeSocket;
  readonly #sealer: Sealer;
  readonly #acts: (() => unknown)[] = [];
  /** The last event was sent. */
  #done = false;
  #position = 0;
  /** Position at which time began to be counted as it is now, and that time. */
  #zero = { position: 0, time: 0 };
  /** Whether this side closed the socket. */
  #cut = false;
  #utterance = '';
  #begin = 0;
  index = 0;

  constructor(agent: string, ticket: Record<string, unknown>, socket: RuntimeSocket, sealer: Sealer, habits: Habits) {
    this.agent = agent;
    this.ticket = ticket;
    this.#socket = socket;
    this.#sealer = sealer;
    this.habits = habits;
  }

  /** Revision that the edge wants. */
  get revision(): string {
    return String(this.ticket.revision);
  }

  get position(): number {
    return this.#position;
  }

  get time(): number {
    const rate = this.opened ? (bytesPerSecond(this.opened.format) ?? 32_000) : 32_000;
    // In whole samples, as an agent counts: the same wherever it began.
    return Math.round(this.#zero.time * rate + this.#position - this.#zero.position) / rate;
  }

  send(event: LinkEvent): void {
    if (this.#done) return;
    this.events.push(event);
    const last = event.type === 'final' || event.type === 'refusal';
    this.#done = last;
    this.#acts.push(async () => {
      const record = await this.#sealer.seal(encoder.encode(JSON.stringify(event)), last);
      if (!this.closed && !this.#cut) this.#socket.send(record);
    });
  }

  /** Bytes that are no record. */
  sendRaw(message: string | Uint8Array): void {
    this.#acts.push(() => {
      if (!this.#cut) this.#socket.send(message);
    });
  }

  /** The connection breaks. */
  cut(): void {
    this.#acts.push(() => {
      this.#cut = true;
      this.#socket.close(1011, 'cut');
    });
  }

  /** Every queued act is done. */
  get idle(): boolean {
    return this.#acts.length === 0;
  }

  /** Runs queued acts. Only the context that made a socket may use it, so tests queue and this polls. */
  async work(): Promise<void> {
    while (!this.closed) {
      for (let act = this.#acts.shift(); act; act = this.#acts.shift()) await act();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** Ends the current utterance. */
  cutUtterance(): void {
    this.#end('endpoint');
  }

  /** Hears silence up to there, and settles it. */
  settle(position: number): void {
    this.#position = position;
    this.send({ type: 'heard', position, time: this.time });
    this.checkpoint();
  }

  checkpoint(change: Partial<Checkpoint> = {}): void {
    const { position, time, index } = this;
    this.send({ type: 'checkpoint', position, time, index, state: '', ...change });
  }

  receive(plaintext: Uint8Array): void {
    const record = decodeLinkRecord(plaintext);
    if (!record.ok) throw new Error(record.refusal.detail);
    const { value } = record;
    const message: Received =
      value.kind === 'audio'
        ? { kind: 'audio', position: value.position, text: decoder.decode(value.audio) }
        : value.control;
    this.messages.push(message);
    if (this.habits.before?.(this, message)) return;
    if ('kind' in message) this.#listen(message.position, message.text);
    else this.#act(message);
  }

  #listen(position: number, text: string): void {
    if (position !== this.#position) throw new Error(`audio at ${position}, not at ${this.#position}`);
    for (const letter of text) {
      if (this.#utterance === '') this.#begin = this.time;
      this.#position += 1;
      if (letter === '.') this.#end('endpoint');
      else if (letter !== '_') this.#utterance += letter;
    }
    if (this.habits.acknowledges) this.send({ type: 'heard', position: this.#position, time: this.time });
    if (!this.habits.interims || this.#utterance === '') return;
    const words = this.#words();
    const { index, time } = this;
    const text2 = words.map(({ word }) => word).join(' ');
    const stable = Math.max(0, words.length - 1);
    this.send({ type: 'interim', index, start: this.#begin, end: time, text: text2, words, stable, confidence: 0.9 });
  }

  #words() {
    const start = this.#begin;
    return this.#utterance
      .split(' ')
      .filter((word) => word !== '')
      .map((word) => ({ word, start, end: this.time, confidence: 0.9 }));
  }

  #end(ending: 'endpoint' | 'finalize' | 'end'): void {
    if (this.#utterance !== '') {
      const words = this.#words();
      const text = words.map(({ word }) => word).join(' ');
      const [start, end] = [this.#begin, this.time];
      const rest = { confidence: 0.9, logProbability: -0.1, words, ending };
      this.send({ type: 'segment', index: this.index, start, end, text, ...rest });
      this.index += 1;
      this.#utterance = '';
    }
    if (this.habits.checkpoints) this.checkpoint();
  }

  #act(control: LinkControl): void {
    switch (control.type) {
      case 'open': {
        this.opened = control;
        const { from, model } = control;
        if (from) {
          this.#position = from.position;
          this.#zero = { position: from.position, time: from.time };
          this.index = from.index;
        }
        if (this.habits.ready) this.ready(model);
        return;
      }
      case 'finalize':
        this.#end('finalize');
        this.send({ type: 'finalized', id: control.id });
        return;
      case 'clear':
        this.#utterance = '';
        this.send({ type: 'cleared', id: control.id });
        return;
      case 'options':
        return;
      case 'end':
        this.#end('end');
        if (this.habits.finals) this.final();
    }
  }

  ready(model: string): void {
    this.send({ type: 'ready', agent: this.agent, model, revision: this.revision, language: 'en' });
  }

  final(): void {
    const { time, index, opened } = this;
    const about = { model: opened?.model ?? '', revision: this.revision, language: 'en' };
    this.send({ type: 'final', ...about, durationSeconds: time, speechSeconds: 0, segments: index });
  }
}

/** Returns the default behaviour of an agent with changes. */
export const habitsOf = (change: Partial<Habits> = {}): Habits => ({
  acknowledges: true,
  checkpoints: true,
  interims: false,
  finals: true,
  ready: true,
  before: undefined,
  ...change,
});

/** Lets an agent take live streams, and collects them. */
export function listen(agent: FakeAgent, habits: Habits = habitsOf(), streams: AgentStream[] = []): AgentStream[] {
  agent.upgrade = async (request) => {
    const taken = await agent.takeCall(request);
    if (taken instanceof Response) return taken;
    const { ticket, opener, sealer } = taken;
    const { 0: theirs, 1: ours } = new WebSocketPair();
    const stream = new AgentStream(agent.name, ticket, ours, sealer, habits);
    streams.push(stream);
    ours.binaryType = 'arraybuffer';
    let tail = Promise.resolve();
    ours.addEventListener('message', ({ data }) => {
      tail = tail.then(async () => {
        for await (const opened of opener.open(new Uint8Array(data as ArrayBuffer))) {
          if (!opened.ok) throw new Error(opened.refusal.detail);
          if (opened.value.final) stream.finals.push(stream.messages.length);
          stream.receive(opened.value.plaintext);
        }
      });
    });
    ours.addEventListener('close', ({ code }) => {
      stream.closed = { code };
      ours.close(1000, '');
    });
    ours.accept();
    void stream.work();
    return new Response(null, { status: 101, webSocket: theirs });
  };
  return streams;
}

/** Resolves when `look` finds something; what it looks at changes with messages of sockets. */
export const eventually = <T>(look: () => T | undefined | false | null): Promise<T> =>
  vi.waitUntil(look, { timeout: 8_000, interval: 2 }) as Promise<T>;
