/** A message that has its place between two samples. */
export interface Mark {
  readonly type: 'finalize' | 'clear' | 'options' | 'end';
  readonly id?: number;
  readonly options?: unknown;
}

type Item =
  | { readonly position: number; readonly audio: Uint8Array<ArrayBuffer>; readonly mark?: undefined }
  | { readonly position: number; readonly mark: Mark; readonly audio?: undefined };

/**
 * What the edge may have to hear again: audio that it has not settled, and marks that it has not answered. The client's
 * own ring, so that neither a broken connection nor an edge that starts again loses a sample.
 */
export class Backlog {
  #items: Item[] = [];
  #cursor = 0;
  #start = 0;
  #end = 0;
  /** Where the edge goes on. */
  #from = 0;
  #options: unknown;

  /** Options where the settled part ends; `undefined`: those of the beginning. */
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

  /** Audio before `position` needs no keeping; marks before it neither, but for those that wait for an answer. */
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

  /** The edge answered a mark: it need not be sent again. False when it was answered before. */
  answered(type: Mark['type'], id: number): boolean {
    const at = this.#items.findIndex(({ mark }) => mark?.type === type && mark.id === id);
    if (at < 0) return false;
    this.#items.splice(at, 1);
    if (at < this.#cursor) this.#cursor -= 1;
    return true;
  }

  /**
   * The edge goes on at `position`: audio from there on is sent again, and so are all marks that are kept, since saying
   * them twice changes nothing. The edge knows questions that it has heard by their ids.
   */
  goTo(position: number): void {
    this.#cursor = 0;
    this.#from = position;
  }

  /** The next thing to send, without what the edge has. A packet is never cut. */
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
