import type { StreamEvent } from './events.ts';

/** Unread events. A newer interim of an utterance replaces the older one. */
export class EventQueue implements AsyncIterable<StreamEvent> {
  #events: StreamEvent[] = [];
  #wake: (() => void) | undefined;
  #over: { readonly error: Error | undefined } | undefined;

  push(event: StreamEvent): void {
    const last = this.#events.at(-1);
    if (event.type === 'interim' && last?.type === 'interim' && last.index === event.index) this.#events.pop();
    this.#events.push(event);
    this.#wake?.();
  }

  /** Ends the iteration after the queued events, with the error if there is one. */
  close(error?: Error): void {
    this.#over ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent> {
    for (;;) {
      const event = this.#events.shift();
      if (event) {
        yield event;
        continue;
      }
      if (this.#over?.error) throw this.#over.error;
      if (this.#over) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
