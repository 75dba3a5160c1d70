/** Answers that a session stores for a client that lost one and repeats its request. */
export const STREAM_ANSWERS_MAX = 256;

export type RequestType = 'finalize' | 'clear';

/** Deduplicates a client's `finalize` and `clear` requests, which it repeats when it lost the answer. */
export class PendingRequests {
  readonly #pending = new Set<string>();
  /** The last requests that were answered, oldest first. */
  readonly #answered = new Set<string>();

  get size(): number {
    return this.#pending.size;
  }

  add(type: RequestType, id: number): void {
    this.#pending.add(`${type} ${id}`);
  }

  isPending(type: RequestType, id: number): boolean {
    return this.#pending.has(`${type} ${id}`);
  }

  wasAnswered(type: RequestType, id: number): boolean {
    return this.#answered.has(`${type} ${id}`);
  }

  /** Moves a request to the answered ones. Returns false when it is not pending. */
  answer(type: RequestType, id: number): boolean {
    const key = `${type} ${id}`;
    if (!this.#pending.delete(key)) return false;
    this.#answered.add(key);
    const [oldest] = this.#answered;
    if (oldest !== undefined && this.#answered.size > STREAM_ANSWERS_MAX) this.#answered.delete(oldest);
    return true;
  }
}
