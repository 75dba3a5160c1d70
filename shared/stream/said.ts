import { limits } from '../limits.ts';
import type { LinkEvent } from './link.ts';

/** What of an agent's events concerns the client. */
export type Telling = Extract<
  LinkEvent,
  { type: 'speech_started' | 'speech_ended' | 'interim' | 'segment' | 'utterance_end' | 'finalized' | 'cleared' }
>;

/** Half a sample of the slowest format, so that times that went through JSON or another agent still are the same. */
const EPSILON = 1 / 16_000;

/**
 * What the client was told. An agent that takes over from a checkpoint tells again what came after it: that is dropped
 * here, so the client hears each thing once, and nothing that contradicts what it was told no later sound would change.
 */
export class Said {
  #next: number;
  #started = -1;
  #ended = -1;
  #utterance = -1;
  #stable = new Map<number, readonly string[]>();

  /** `next`: index of the first segment that was not told. */
  constructor(next: number) {
    this.#next = next;
  }

  get next(): number {
    return this.#next;
  }

  /**
   * `new`: to be told. `known`: was told, or must not be told. `skipped`: a segment is missing before it, so the agent
   * is not at work on what the client waits for.
   */
  judge(event: Telling): 'new' | 'known' | 'skipped' {
    switch (event.type) {
      case 'speech_started':
        if (event.at <= this.#started + EPSILON) return 'known';
        this.#started = event.at;
        return 'new';
      case 'speech_ended':
        if (event.at <= this.#ended + EPSILON) return 'known';
        this.#ended = event.at;
        return 'new';
      case 'utterance_end':
        if (event.lastWordEnd <= this.#utterance + EPSILON) return 'known';
        this.#utterance = event.lastWordEnd;
        return 'new';
      case 'interim':
        return this.#judgeInterim(event);
      case 'segment':
        if (event.index !== this.#next) return event.index < this.#next ? 'known' : 'skipped';
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

  #judgeInterim({ index, words, stable }: Extract<Telling, { type: 'interim' }>): 'new' | 'known' {
    if (index < this.#next || index > this.#next + limits.streamKeptSegments.value) return 'known';
    const before = this.#stable.get(index) ?? [];
    if (before.some((word, at) => words[at]?.word !== word)) return 'known';
    if (stable > before.length)
      this.#stable.set(
        index,
        words.slice(0, stable).map(({ word }) => word),
      );
    return 'new';
  }
}
