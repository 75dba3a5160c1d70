import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { LinkEvent } from '../../shared/stream/link.ts';
import { decodeLinkEvent } from '../../shared/stream/link-event.ts';
import { encodeAudio, encodeControl } from '../../shared/stream/link-record.ts';
import type { StreamCallAnswer } from '../pool/dial-stream.ts';
import type { Frame } from './replay-buffer.ts';

/** Memory for one plaintext while it is sealed. A sealer has read it when its call returns. */
const plain = new Uint8Array(limits.sealSegmentBytes.value);
const plainRoom = (bytes: number): Uint8Array => plain.subarray(0, bytes);

export interface LineEars {
  hear(event: LinkEvent): void;
  /** The connection is of no use any more; said once, and not after `close`. */
  lost(refusal: Refusal): void;
  /** The listener threw; the line is closed. */
  broke(error: unknown): void;
}

/** One connection to one agent: records out and events in, each in their order. */
export class Line {
  readonly agent: string;
  readonly #answer: StreamCallAnswer;
  readonly #ears: LineEars;
  readonly #now: () => number;
  readonly #out: Frame[] = [];
  readonly #sealed = (record: Uint8Array) => this.#send(record);
  readonly #failed = (error: unknown) => this.#unsent(error);
  /** Memory for records until they are sent, used again: audio comes ten times a second. */
  #place = new Uint8Array(0);
  readonly #in: Uint8Array[] = [];
  #inBytes = 0;
  #sending = false;
  #reading = false;
  #over = false;
  /** When the agent was last heard, ms since 1970. */
  heardAt: number;

  constructor(agent: string, answer: StreamCallAnswer, ears: LineEars, now: () => number) {
    this.agent = agent;
    this.#answer = answer;
    this.#ears = ears;
    this.#now = now;
    this.heardAt = now();
    const { socket } = answer;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    socket.addEventListener('close', ({ code }) => {
      this.#shut(1000);
      this.#lose(`closed by the agent: ${code}`);
    });
    socket.addEventListener('error', () => this.#lose('socket error'));
    socket.accept();
  }

  /** One record, after those before it; `end` is the last one. */
  send(portion: Frame): void {
    if (this.#over) return;
    this.#out.push(portion);
    if (!this.#sending) this.#flush();
  }

  /** Ends the connection; nothing more is heard of it. */
  close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#out.length = 0;
    this.#in.length = 0;
    this.#shut(1000);
  }

  /** One after the other; of a stream that keeps up there is one, and nothing is made for it but the record. */
  #flush(): void {
    const next = this.#out.shift();
    this.#sending = next !== undefined;
    if (!next) return;
    try {
      const record = this.#seal(next);
      if (record instanceof Promise) record.then(this.#sealed, this.#failed);
      else this.#send(record);
    } catch (error) {
      this.#unsent(error);
    }
  }

  #send(record: Uint8Array): void {
    if (this.#over) return;
    try {
      this.#answer.socket.send(record);
    } catch (error) {
      this.#unsent(error);
      return;
    }
    this.#flush();
  }

  /** The socket is closing, which its own event tells, or a sealer has come to its end. */
  #unsent(error: unknown): void {
    this.#sending = false;
    this.#lose(`sending: ${error instanceof Error ? error.name : 'unknown'}`);
  }

  #seal(portion: Frame): Uint8Array | Promise<Uint8Array> {
    const { sealer } = this.#answer;
    const room = (bytes: number) => this.#roomFor(bytes);
    if (portion.kind === 'audio')
      return sealer.seal(encodeAudio(portion.position, portion.audio, plainRoom), false, room);
    return sealer.seal(encodeControl(portion.control), portion.control.type === 'end', room);
  }

  #roomFor(bytes: number): Uint8Array {
    if (bytes > limits.streamKeptRecordBytes.value) return new Uint8Array(bytes);
    if (this.#place.length < bytes) this.#place = new Uint8Array(bytes);
    return this.#place.subarray(0, bytes);
  }

  #receive(data: string | ArrayBuffer): void {
    if (this.#over) return;
    if (typeof data === 'string') {
      this.#lose('text where records are due');
      return;
    }
    this.heardAt = this.#now();
    this.#in.push(new Uint8Array(data));
    this.#inBytes += data.byteLength;
    if (this.#inBytes > limits.streamWindowBytes.value) this.#lose('events faster than they can be read');
    else if (!this.#reading) void this.#read();
  }

  async #read(): Promise<void> {
    this.#reading = true;
    try {
      for (let next = this.#in.shift(); next; next = this.#in.shift()) {
        this.#inBytes -= next.byteLength;
        const opened = await this.#answer.opener.openWhole(next);
        if (this.#over) return;
        if (!opened.ok) {
          this.#lose(opened.refusal.detail ?? 'a record does not open', 'seal_broken');
          return;
        }
        for (const { plaintext, final } of opened.value) if (!this.#tell(plaintext, final)) return;
      }
    } catch (error) {
      this.close();
      this.#ears.broke(error);
    } finally {
      this.#reading = false;
    }
  }

  /** False when there is nothing more to be read. */
  #tell(plaintext: Uint8Array, final: boolean): boolean {
    const event = decodeLinkEvent(plaintext);
    const last = event?.type === 'final' || event?.type === 'refusal';
    if (!event) this.#lose('an event is not understood');
    else if (last !== final) this.#lose('the final flag and the last event do not go together');
    else this.#ears.hear(event);
    return !this.#over;
  }

  #lose(detail: string, reason: 'pool_lost' | 'seal_broken' = 'pool_lost'): void {
    if (this.#over) return;
    this.close();
    try {
      this.#ears.lost(refuse(reason, undefined, detail));
    } catch (error) {
      this.#ears.broke(error);
    }
  }

  #shut(code: number): void {
    try {
      this.#answer.socket.close(code, '');
    } catch {
      // It was never open, or is closed already.
    }
  }
}
