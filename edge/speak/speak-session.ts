import { type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { Alarm, Runtime } from '../clock.ts';
import {
  readSpeakMessage,
  type SpeakMessage,
  SpeakText,
  sequenceMessage,
  warningMessage,
} from '../protocol/deepgram-speak.ts';
import { nextOf, type SpeechSource, startOf } from '../protocol/speech-answer.ts';
import { UnplayedSound } from './unplayed-sound.ts';

/** Flushes that may wait for the one being spoken. */
const FLUSHES_MAX = 16;
/** Longest silence of a client, seconds: a person may think for minutes before an assistant answers. */
const SPEAK_IDLE_S = 600;

const NORMAL = 1000;
/** Deepgram's clients reconnect after it. */
const FAILED = 1011;

/** Text of one `Flush`; without a number complete sentences before it. */
interface Part {
  readonly text: string;
  readonly sequence?: number;
}

export interface SpeakSessionOptions {
  readonly socket: RuntimeSocket;
  /** Opens a request for speech, in the allowance and on record. */
  readonly speak: (text: string) => Promise<Result<SpeechSource>>;
  /** Silence between sentences, in the format of the socket. */
  readonly pause: Uint8Array;
  /** Bytes of one second of sound. */
  readonly byteRate: number;
  readonly claims: Pick<Claims, 'sessionSeconds' | 'idleSeconds'>;
  readonly runtime: Runtime;
}

/** A WebSocket that takes text and returns speech, one text after the other: complete sentences at once, the rest at a `Flush`. */
export class SpeakSession {
  /** Resolves when the socket is closed. */
  readonly ended: Promise<void>;
  readonly #options: SpeakSessionOptions;
  readonly #text = new SpeakText();
  readonly #unplayed: UnplayedSound;
  readonly #idleMs: number;
  #idle: Alarm | undefined;
  #expiry: Alarm | undefined;
  #waiting: Part[] = [];
  /** Number of the next flush. */
  #sequence = 0;
  #isSpeaking = false;
  /** A sentence was spoken since the last `Flushed`. */
  #hasSpoken = false;
  /** The request that is being spoken. */
  #current: SpeechSource | undefined;
  /** Number of `Clear` messages: work of an earlier number sends nothing more. */
  #epoch = 0;
  #isClosing = false;
  #isClosed = false;
  #onEnd: () => void = () => {};

  constructor(options: SpeakSessionOptions) {
    this.#options = options;
    this.#unplayed = new UnplayedSound(options.byteRate, options.runtime.now);
    this.#idleMs = 1_000 * Math.min(options.claims.idleSeconds ?? SPEAK_IDLE_S, SPEAK_IDLE_S);
    this.ended = new Promise((resolve) => {
      this.#onEnd = resolve;
    });
  }

  start(metadata: string): void {
    const { socket, claims, runtime } = this.#options;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    socket.addEventListener('close', () => this.#close(NORMAL, ''));
    socket.addEventListener('error', () => this.#close(NORMAL, ''));
    socket.accept();
    this.#send(metadata);
    this.#expiry = runtime.after(1_000 * claims.sessionSeconds);
    void this.#expiry.rings.then(() => this.#close(this.#isSpeaking ? FAILED : NORMAL, 'stream_too_long'));
    this.#restartIdle();
  }

  #restartIdle(): void {
    this.#idle?.cancel();
    this.#idle = this.#options.runtime.after(this.#idleMs);
    // A client that listens sends nothing: the end of the speech restarts the alarm.
    void this.#idle.rings.then(() => !this.#isSpeaking && this.#close(NORMAL, 'stream_idle'));
  }

  #receive(data: string | ArrayBuffer): void {
    if (this.#isClosed || this.#isClosing) return;
    this.#restartIdle();
    const message = readSpeakMessage(data);
    const taken = message.ok ? this.#take(message.value) : message;
    if (!taken.ok) this.#send(warningMessage(taken.refusal));
  }

  #take(message: SpeakMessage): Result<undefined> {
    if (message.type === 'Speak') {
      const appended = this.#text.append(message.text);
      void this.#speakAll();
      return appended;
    }
    if (message.type === 'Clear') this.#clear();
    else if (message.type === 'Close') this.#finish();
    else return this.#flush();
    return ok(undefined);
  }

  #flush(): Result<undefined> {
    if (this.#waiting.length >= FLUSHES_MAX) {
      const rule = `${FLUSHES_MAX} of them wait to be spoken`;
      return no(refuse('field_invalid', { field: 'Flush', rule }));
    }
    this.#waiting.push({ text: this.#text.take(), sequence: this.#sequence });
    this.#sequence += 1;
    void this.#speakAll();
    return ok(undefined);
  }

  #clear(): void {
    this.#epoch += 1;
    this.#text.take();
    this.#waiting = [];
    this.#hasSpoken = false;
    this.#current?.abandon();
    this.#send(sequenceMessage('Cleared', this.#sequence));
  }

  /** Speaks what is left, then closes. */
  #finish(): void {
    const text = this.#text.take();
    if (text.trim() !== '') this.#waiting.push({ text, sequence: this.#sequence });
    this.#isClosing = true;
    void this.#speakAll();
  }

  async #speakAll(): Promise<void> {
    if (this.#isSpeaking) return;
    this.#isSpeaking = true;
    for (let part = this.#next(); part && !this.#isClosed; part = this.#next()) {
      const epoch = this.#epoch;
      const spoken = await this.#speak(part.text, epoch);
      this.#current = undefined;
      if (epoch !== this.#epoch) continue;
      this.#hasSpoken = part.sequence === undefined;
      if (!spoken.ok) this.#fail(spoken.refusal);
      else if (part.sequence !== undefined) this.#send(sequenceMessage('Flushed', part.sequence));
    }
    this.#isSpeaking = false;
    if (this.#isClosing) this.#close(NORMAL, '');
    else if (!this.#isClosed) this.#restartIdle();
  }

  #next(): Part | undefined {
    const flush = this.#waiting.shift();
    if (flush) return flush;
    const text = this.#text.takeSentences();
    return text.trim() === '' ? undefined : { text };
  }

  /** Speaks a text. A refusal of the text itself is a warning, and the flush is over; any other one is returned. */
  async #speak(text: string, epoch: number): Promise<Result<undefined>> {
    if (text.trim() === '') return ok(undefined);
    const opened = await this.#options.speak(text);
    if (!opened.ok) return opened;
    const source = opened.value;
    const isStale = () => epoch !== this.#epoch || this.#isClosed;
    if (isStale()) source.abandon();
    this.#current = source;
    try {
      return await this.#relay(source, isStale);
    } catch (error) {
      return no(await source.broke(error));
    }
  }

  async #relay(source: SpeechSource, isStale: () => boolean): Promise<Result<undefined>> {
    const start = await startOf(source);
    if (!start.ok) {
      await source.end(start);
      if (isStale() || refusals[start.refusal.reason].type !== 'invalid_request_error') return start;
      this.#send(warningMessage(start.refusal));
      return ok(undefined);
    }
    source.deliver();
    if (this.#hasSpoken && !isStale()) this.#sendSound(this.#options.pause);
    let sound: Uint8Array | undefined = start.value.sound;
    for (;;) {
      if (sound && !isStale()) this.#sendSound(sound);
      const next = await nextOf(source);
      if (!next.ok) {
        await source.end(next);
        return next;
      }
      if (next.value === undefined || next.value instanceof Uint8Array) sound = next.value;
      else return source.end(ok(next.value));
    }
  }

  /** Closes after a loss, with the reason: what was heard is not the whole. */
  #fail(refusal: Refusal): void {
    this.#send(warningMessage(refusal));
    this.#close(FAILED, refusal.reason);
  }

  #sendSound(sound: Uint8Array): void {
    if (this.#unplayed.add(sound.length)) this.#send(sound);
    else this.#fail(refuse('reader_slow'));
  }

  #send(message: string | Uint8Array): void {
    if (this.#isClosed) return;
    try {
      this.#options.socket.send(message);
    } catch {
      // The socket closed between two events.
      this.#close(NORMAL, '');
    }
  }

  #close(code: number, reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting = [];
    this.#idle?.cancel();
    this.#expiry?.cancel();
    this.#current?.abandon();
    try {
      this.#options.socket.close(code, reason);
    } catch {
      // It is closed already.
    }
    this.#onEnd();
  }
}
