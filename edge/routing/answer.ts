import { MiB } from '../../shared/bytes.ts';
import { ANSWER_SILENCE_MS } from '../../shared/pool/limits.ts';
import { clampRetry, type Reason, type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Opened } from '../../shared/seal/records.ts';
import { openRead } from '../../shared/seal/streams.ts';
import { late, type Runtime, within } from '../clock.ts';
import type { SealedAnswer } from './dial.ts';
import { SNAPSHOT_WAIT_MS } from './snapshot.ts';

/** Answer with a length that is read at once; a longer one is streamed. */
const ANSWER_BYTES = MiB;

/** The events that end an answer, whatever came before them. */
export type Ended =
  | { readonly type: 'final' }
  | {
      readonly type: 'refusal';
      readonly reason: Reason;
      readonly params?: Readonly<Record<string, string | number>>;
      readonly retryAfter?: number | undefined;
    };

/** Parses a record; `undefined` for anything that an agent of this version does not send. */
export type ReadEvent<E> = (record: Uint8Array) => E | undefined;

const lost = (detail: string): Result<never> => no(refuse('pool_lost', undefined, detail));

/**
 * The events of an agent's answer, one at a time. Ends after `final` or `refusal`; any other end, silence included, is the
 * refusal `pool_lost`. One call of `next` at a time.
 */
export class Answer<E extends { readonly type: string }> {
  readonly #sealed: SealedAnswer;
  readonly #read: ReadEvent<E>;
  readonly #runtime: Runtime;
  /** Records of an answer that was read whole. */
  #whole: Opened[] | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #stream: ReturnType<typeof openRead> | undefined;

  constructor(sealed: SealedAnswer, read: ReadEvent<E>, runtime: Runtime) {
    this.#sealed = sealed;
    this.#read = read;
    this.#runtime = runtime;
  }

  async next(): Promise<Result<E>> {
    // An agent that names the length had the whole answer before it sent the first byte.
    const { length = Number.POSITIVE_INFINITY } = this.#sealed;
    const opened = await (length <= ANSWER_BYTES ? this.#nextOfWhole() : this.#nextOfStream());
    if (!opened.ok) return opened;
    const { plaintext, final } = opened.value;
    const event = this.#read(plaintext);
    if (!event) return lost('an event has an unknown shape');
    const closes = event.type === 'final' || event.type === 'refusal';
    if (closes !== final) return lost('the final flag and the final event do not go together');
    return ok(event);
  }

  async #nextOfWhole(): Promise<Result<Opened>> {
    if (!this.#whole) {
      const { response, opener } = this.#sealed;
      let body: ArrayBuffer | typeof late;
      try {
        body = await within(response.arrayBuffer(), ANSWER_SILENCE_MS, this.#runtime);
      } catch {
        return lost('the answer ended early');
      }
      if (body === late) return lost('silent for too long');
      const opened = await opener.openWhole(new Uint8Array(body));
      if (!opened.ok) return lost(opened.refusal.detail ?? 'the answer cannot be opened');
      this.#whole = [...opened.value];
    }
    const record = this.#whole.shift();
    return record ? ok(record) : lost('the answer ended early');
  }

  async #nextOfStream(): Promise<Result<Opened>> {
    if (!this.#stream) {
      const { response, opener } = this.#sealed;
      if (!response.body) return lost('the answer has no body');
      this.#reader = response.body.getReader();
      this.#stream = openRead(this.#reader, opener);
    }
    const step = await within(this.#stream.next(), ANSWER_SILENCE_MS, this.#runtime);
    if (step === late) return lost('silent for too long');
    if (step.done) return lost('the answer ended early');
    const opened = step.value;
    return opened.ok ? opened : lost(opened.refusal.detail ?? 'the answer cannot be opened');
  }

  /** Reads a finished answer to its end, so that its connection can be used again. */
  async drain(): Promise<void> {
    if (!this.#stream) return;
    const step = await within(this.#stream.next(), SNAPSHOT_WAIT_MS, this.#runtime).catch(() => late);
    if (step === late) this.close();
  }

  /** Cancels the answer. */
  close(): void {
    const cancelled = this.#reader ? this.#reader.cancel() : this.#sealed.response.body?.cancel();
    // Fails when the answer has ended or is read as a whole.
    cancelled?.catch(() => {});
  }
}

/** Returns an agent's refusal as a refusal for the caller. */
export const agentRefusal = ({ reason, params, retryAfter }: Extract<Ended, { type: 'refusal' }>): Refusal => ({
  ...refuse(reason, params, 'from the agent'),
  ...(retryAfter !== undefined && { retryAfter: clampRetry(retryAfter * 1_000) }),
});
