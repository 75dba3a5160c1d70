/** Flow control toward one agent: bytes sent, and bytes that the agent acknowledged. Positions in bytes of the stream. */
export class SendWindow {
  #sent: number;
  #acknowledged: number;

  constructor(position: number) {
    this.#sent = position;
    this.#acknowledged = position;
  }

  get sent(): number {
    return this.#sent;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Starts over at `position`, for another agent. */
  reset(position: number): void {
    this.#sent = position;
    this.#acknowledged = position;
  }

  /**
   * Reports whether the window of `size` bytes has room. When nothing is in flight a message goes in any case: one that
   * is larger than the window would never go otherwise.
   */
  maySend(bytes: number, size: number): boolean {
    return this.#sent === this.#acknowledged || this.#sent + bytes - this.#acknowledged <= size;
  }

  send(bytes: number): void {
    this.#sent += bytes;
  }

  /** Returns false when `position` was never sent. An older position than the last one changes nothing. */
  acknowledge(position: number): boolean {
    if (position > this.#sent) return false;
    this.#acknowledged = Math.max(this.#acknowledged, position);
    return true;
  }
}
