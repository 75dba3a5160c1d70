/** A message with a position between two samples. */
export interface Mark {
  readonly type: 'finalize' | 'clear' | 'options' | 'end';
  readonly id?: number;
  readonly options?: unknown;
}

type Item =
  | { readonly position: number; readonly audio: Uint8Array<ArrayBuffer>; readonly mark?: undefined }
  | { readonly position: number; readonly mark: Mark; readonly audio?: undefined };

/**
 * Replay buffer of the client: audio that the edge has not settled, and marks that it has not answered, so
 * that neither a broken connection nor a restarted edge loses a sample.
 */
export class Backlog {
  #items: Item[] = [];
  #cursor = 0;
  #start = 0;
  #end = 0;
  /** Position from which the edge continues. */
  #from = 0;
  #options: unknown;

  /** Options at the end of the settled part; `undefined`: the initial ones. */
  get options(): unknown {
    return this.#options;
  }

  get unsettled(): number {
    return this.#end - this.#start;
  }

  get start(): number {
    return this.#start;
  }

  get end(): number {
    return this.#end;
  }

  push(audio: Uint8Array<ArrayBuffer>): void {
    this.#items.push({ position: this.#end, audio });
    this.#end += audio.length;
  }

  mark(mark: Mark): void {
    this.#items.push({ position: this.#end, mark });
  }

  /** Drops audio before `position`, and marks before it that wait for no answer. */
  settle(position: number): void {
    if (position <= this.#start) return;
    this.#start = Math.min(position, this.#end);
    const sent = this.#items.slice(0, this.#cursor).filter((item) => {
      if (item.audio) return item.position + item.audio.length > this.#start;
      if (item.mark.type !== 'options') return true;
      if (item.position > this.#start) return true;
      this.#options = item.mark.options;
      return false;
    });
    this.#items = [...sent, ...this.#items.slice(this.#cursor)];
    this.#cursor = sent.length;
  }

  /** Drops an answered mark. False when it was answered before. */
  answered(type: Mark['type'], id: number): boolean {
    const at = this.#items.findIndex(({ mark }) => mark?.type === type && mark.id === id);
    if (at < 0) return false;
    this.#items.splice(at, 1);
    if (at < this.#cursor) this.#cursor -= 1;
    return true;
  }

  /**
   * Rewinds to `position`: audio from there on and all retained marks are sent again. Marks are idempotent:
   * the edge knows their ids.
   */
  goTo(position: number): void {
    this.#cursor = 0;
    this.#from = position;
  }

  /** Returns the next item to send, without the part that the edge has. A packet is never cut. */
  next(packets: boolean): Item | undefined {
    for (;;) {
      const item = this.#items[this.#cursor];
      if (!item) return undefined;
      this.#cursor += 1;
      const known = this.#from - item.position;
      if (!item.audio || known <= 0) return item;
      if (known >= item.audio.length) continue;
      return packets ? item : { position: this.#from, audio: item.audio.subarray(known) };
    }
  }
}
