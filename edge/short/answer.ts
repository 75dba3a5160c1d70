import { limits } from '../../shared/limits.ts';
import { clampRetry, type Reason, type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Opened } from '../../shared/seal/records.ts';
import { openRead } from '../../shared/seal/streams.ts';
import { late, type Surroundings, within } from '../clock.ts';
import type { Line } from '../pool/dial.ts';

/** The events that say how an answer ended, whatever came before them. */
export type Ended =
  | { readonly type: 'final' }
  | {
      readonly type: 'refusal';
      readonly reason: Reason;
      readonly params?: Readonly<Record<string, string | number>>;
      readonly retryAfter?: number | undefined;
    };

/** What one record says; `undefined` when it is nothing that an agent of this version says. */
export type ReadEvent<E> = (record: Uint8Array) => E | undefined;

const lost = (detail: string): Result<never> => no(refuse('pool_lost', undefined, detail));

/**
 * The events of an agent's answer, one at a time. Ends after `final` or `refusal`; anything else that ends it, silence
 * included, is the refusal `pool_lost`. One call of `next` at a time.
 */
export class Answer<E extends { readonly type: string }> {
  readonly #line: Line;
  readonly #read: ReadEvent<E>;
  readonly #surroundings: Surroundings;
  /** The agent said how long the answer is: it had all of it before it sent the first byte. */
  readonly #short: boolean;
  /** All records of an answer that was read whole, and which comes next. */
  #whole: readonly Opened[] | undefined;
  #told = 0;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #stream: ReturnType<typeof openRead> | undefined;

  constructor(line: Line, read: ReadEvent<E>, surroundings: Surroundings) {
    const { length, whole } = line;
    this.#line = line;
    this.#read = read;
    this.#surroundings = surroundings;
    if (whole?.ok) this.#whole = whole.value;
    this.#short = length !== undefined && length <= limits.answerBytes.value;
  }

  next(): Promise<Result<E>> {
    return this.#short ? this.#nextOfWhole() : this.#nextOfStream();
  }

  /** The next event if it is here; `undefined` when it has to be waited for, or there is none. */
  held(): Result<E> | undefined {
    const record = this.#whole?.[this.#told];
    if (!record) return undefined;
    this.#told += 1;
    return this.#toEvent(record);
  }

  #toEvent({ plaintext, final }: Opened): Result<E> {
    const event = this.#read(plaintext);
    if (!event) return lost('an event has an unknown shape');
    const closes = event.type === 'final' || event.type === 'refusal';
    if (closes !== final) return lost('the final flag and the final event do not go together');
    return ok(event);
  }

  async #nextOfWhole(): Promise<Result<E>> {
    if (!this.#whole) {
      const whole = this.#line.whole ?? (await this.#readWhole());
      if (!whole.ok) return whole;
      this.#whole = whole.value;
    }
    return this.held() ?? lost('the answer ended early');
  }

  async #readWhole(): Promise<Result<readonly Opened[]>> {
    const { response, opener } = this.#line;
    let body: ArrayBuffer | typeof late;
    try {
      body = await within(response.arrayBuffer(), limits.answerSilenceMs.value, this.#surroundings);
    } catch {
      return lost('the answer ended early');
    }
    if (body === late) return lost('silent for too long');
    const opened = await opener.openWhole(new Uint8Array(body));
    return opened.ok ? opened : lost(opened.refusal.detail ?? 'the answer cannot be opened');
  }

  async #nextOfStream(): Promise<Result<E>> {
    if (!this.#stream) {
      const { response, opener } = this.#line;
      if (!response.body) return lost('the answer has no body');
      this.#reader = response.body.getReader();
      this.#stream = openRead(this.#reader, opener);
    }
    const step = await within(this.#stream.next(), limits.answerSilenceMs.value, this.#surroundings);
    if (step === late) return lost('silent for too long');
    if (step.done) return lost('the answer ended early');
    const opened = step.value;
    return opened.ok ? this.#toEvent(opened.value) : lost(opened.refusal.detail ?? 'the answer cannot be opened');
  }

  /** Reads to the end of the connection, so that it can serve again. Only after the last event; undefined: it was. */
  drain(): Promise<void> | undefined {
    return this.#stream && this.#drainStream(this.#stream);
  }

  async #drainStream(stream: ReturnType<typeof openRead>): Promise<void> {
    const step = await within(stream.next(), limits.snapshotWaitMs.value, this.#surroundings).catch(() => late);
    if (step === late) this.close();
  }

  /** Hangs up. */
  close(): void {
    const hangUp = this.#reader ? this.#reader.cancel() : this.#line.response.body?.cancel();
    // It may have ended by itself, or be read as a whole.
    hangUp?.catch(() => {});
  }
}

/** The refusal an agent sent, as the caller may hear it. */
export const agentRefusal = ({ reason, params, retryAfter }: Extract<Ended, { type: 'refusal' }>): Refusal => ({
  ...refuse(reason, params, 'from the agent'),
  ...(retryAfter !== undefined && { retryAfter: clampRetry(retryAfter * 1_000) }),
});
