import { StreamError } from './events.ts';

/** A bounded FIFO of captured chunks, for one reader. */
export class CaptureBuffer {
  /** Releases the device; called once, when capture ends for any reason. */
  release = () => {};
  readonly #chunksMax: number;
  readonly #chunks: Uint8Array[] = [];
  #over: { readonly error: Error | undefined } | undefined;
  #wake = () => {};

  constructor(chunksMax: number) {
    this.#chunksMax = chunksMax;
  }

  push(chunk: Uint8Array): void {
    if (this.#over) return;
    if (this.#chunks.length < this.#chunksMax) this.#chunks.push(chunk);
    else this.end(new StreamError('microphone_overflow', 'More sound waits to be sent than the buffer holds.'));
    this.#wake();
  }

  /** Ends the iteration behind the queued chunks, with the error if there is one. */
  end(error?: Error): void {
    if (this.#over) return;
    this.#over = { error };
    this.release();
    this.#wake();
  }

  async *read(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk) yield chunk;
        else if (this.#over?.error) throw this.#over.error;
        else if (this.#over) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      this.end();
    }
  }
}
