import type { LinkEvent } from '../../shared/stream/link.ts';
import { STREAM_STORED_SEGMENTS } from './limits.ts';

/** The events of an agent that go to the client. */
export type ClientEvent = Extract<
  LinkEvent,
  { type: 'speech_started' | 'speech_ended' | 'interim' | 'segment' | 'utterance_end' | 'finalized' | 'cleared' }
>;

/** Half a sample of the slowest format: tolerance for times that went through JSON or another agent. */
const EPSILON = 1 / 16_000;

/**
 * Drops events that the client has: an agent that takes over repeats everything after the checkpoint. The client gets
 * each event once, and no interim that takes back a stable word.
 */
export class EventFilter {
  #next: number;
  #started = -1;
  #ended = -1;
  #utterance = -1;
  readonly #stable = new Map<number, readonly string[]>();

  /** `next`: index of the first segment that was not sent. */
  constructor(next: number) {
    this.#next = next;
  }

  get next(): number {
    return this.#next;
  }

  /** Returns `new` for an event to send, `repeated` for one to drop, and `gap` for a segment after a missing one. */
  check(event: ClientEvent): 'new' | 'repeated' | 'gap' {
    switch (event.type) {
      case 'speech_started':
        if (event.at <= this.#started + EPSILON) return 'repeated';
        this.#started = event.at;
        return 'new';
      case 'speech_ended':
        if (event.at <= this.#ended + EPSILON) return 'repeated';
        this.#ended = event.at;
        return 'new';
      case 'utterance_end':
        if (event.lastWordEnd <= this.#utterance + EPSILON) return 'repeated';
        this.#utterance = event.lastWordEnd;
        return 'new';
      case 'interim':
        return this.#checkInterim(event);
      case 'segment':
        if (event.index !== this.#next) return event.index < this.#next ? 'repeated' : 'gap';
        this.#stable.delete(this.#next);
        this.#next += 1;
        return 'new';
      case 'cleared':
        this.#stable.clear();
        return 'new';
      case 'finalized':
        return 'new';
    }
  }

  #checkInterim({ index, words, stable }: Extract<ClientEvent, { type: 'interim' }>): 'new' | 'repeated' {
    if (index < this.#next || index > this.#next + STREAM_STORED_SEGMENTS) return 'repeated';
    const before = this.#stable.get(index) ?? [];
    for (const [at, word] of before.entries()) if (words[at]?.word !== word) return 'repeated';
    if (stable > before.length) this.#stable.set(index, words.slice(0, stable).map(wordOf));
    return 'new';
  }
}

const wordOf = ({ word }: { readonly word: string }) => word;
