import { type Logprob, logprobsOf } from '../../shared/speech/logprobs.ts';
import type { Granularity } from '../../shared/speech/openai-form.ts';
import { appendWords, wordsIn } from '../../shared/speech/words.ts';
import type { SessionEvent } from './live-protocol.ts';
import { stableText } from './stable-text.ts';

type Interim = Extract<SessionEvent, { type: 'interim' }>;
type Segment = Extract<SessionEvent, { type: 'segment' }>;

/** An event for the client, without its id. */
export type ServerEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

/** A span of audio that becomes one item of the conversation. */
interface Item {
  readonly id: string;
  /** Start and end of speech, seconds. */
  startedAt: number | undefined;
  stoppedAt: number | undefined;
  /** Text of the segments so far, and its part that was sent in deltas. */
  text: string;
  sentText: string;
  logprobs: Logprob[];
  readonly segments: Segment[];
  seconds: number;
}

/** A request without an answer of the agent. */
type PendingRequest =
  /** A commit without turn detection: the item is announced at once and owns all segments until the answer. */
  | { readonly id: number; readonly kind: 'commit'; readonly item: Item }
  /** A commit with turn detection: the next end of a turn answers it. */
  | { readonly id: number; readonly kind: 'flush'; answered: boolean }
  | { readonly id: number; readonly kind: 'clear' };

export interface ItemsOptions {
  readonly session: string;
  /** Turns are detected, so speech makes items without a commit. */
  readonly turns: () => boolean;
  readonly logprobs: () => boolean;
  /** The client requests the times of segments, or of words. */
  readonly times: (granularity: Granularity) => boolean;
}

const PREFIX = 'conversation.item.input_audio_transcription';
const milli = (seconds: number) => Math.round(seconds * 1_000);
const round = (seconds: number) => milli(Math.max(0, seconds)) / 1_000;

/**
 * Renders session events as items of an OpenAI conversation. For each item, whatever the agent sends: events come in the
 * documented order, the joined deltas are the transcript, and a committed item is completed or failed once.
 */
export class Items {
  readonly #options: ItemsOptions;
  /** Items without a commit, oldest first; more than one only while words of an earlier one are missing. */
  #open: Item[] = [];
  readonly #pending: PendingRequest[] = [];
  #previous: string | null = null;
  #count = 0;

  /** Detected language. */
  #language: string | undefined;

  constructor(options: ItemsOptions) {
    this.#options = options;
  }

  /** Number of commits and clears without an answer. */
  get waiting(): number {
    return this.#pending.length;
  }

  /** Commits the audio so far, `seconds` of it. */
  commit(id: number, seconds: number): ServerEvent[] {
    if (this.#options.turns()) {
      this.#pending.push({ id, kind: 'flush', answered: false });
      return [];
    }
    const item = this.#open.shift() ?? this.#create();
    this.#open = [];
    item.seconds = seconds;
    this.#pending.push({ id, kind: 'commit', item });
    return this.#announce(item);
  }

  clear(id: number): void {
    this.#pending.push({ id, kind: 'clear' });
  }

  render(event: SessionEvent): ServerEvent[] {
    if (event.type === 'speech_started') return this.#options.turns() ? this.#begin(event.at) : [];
    if (event.type === 'speech_ended') return this.#options.turns() ? this.#stop(this.#open.at(-1), event.at) : [];
    if (event.type === 'interim') return this.#addInterim(event);
    if (event.type === 'segment') return this.#addSegment(event);
    if (event.type === 'language') this.#language = event.language;
    if (event.type === 'finalized' || event.type === 'cleared') return this.#answer(event.id);
    return [];
  }

  /** Completes the items before `time`: speech without words was noise. */
  completeBefore(time: number): ServerEvent[] {
    const events: ServerEvent[] = [];
    while (this.#open[0]?.stoppedAt !== undefined && this.#open[0].stoppedAt <= time) events.push(...this.#passOver());
    return events;
  }

  /** Completes the first item without words. */
  #passOver(): ServerEvent[] {
    const item = this.#open.shift();
    if (!item) return [];
    item.seconds = (item.stoppedAt ?? 0) - (item.startedAt ?? 0);
    const [request] = this.#pending;
    if (request?.kind === 'flush') request.answered = true;
    return [...this.#announce(item), ...this.#complete(item)];
  }

  /** Completes every announced item at the end of the session. */
  finish(): ServerEvent[] {
    return this.#pending
      .splice(0)
      .flatMap((request) => (request.kind === 'commit' ? this.#complete(request.item) : []));
  }

  /** Fails every item that the client knows and that was not completed. */
  fail(error: Readonly<Record<string, unknown>>): ServerEvent[] {
    const committed = this.#pending.splice(0).flatMap((request) => (request.kind === 'commit' ? [request.item] : []));
    const open = this.#open.splice(0).filter(({ startedAt, sentText }) => startedAt !== undefined || sentText !== '');
    return [...committed, ...open].map(({ id }) => ({
      type: `${PREFIX}.failed`,
      item_id: id,
      content_index: 0,
      error,
    }));
  }

  #create(): Item {
    this.#count += 1;
    const id = `item_${this.#options.session}_${this.#count}`;
    return {
      id,
      startedAt: undefined,
      stoppedAt: undefined,
      text: '',
      sentText: '',
      logprobs: [],
      segments: [],
      seconds: 0,
    };
  }

  #begin(at: number): ServerEvent[] {
    const last = this.#open.at(-1);
    if (last && last.startedAt !== undefined && last.stoppedAt === undefined) return [];
    const item = last && last.startedAt === undefined ? last : this.#create();
    if (item !== last) this.#open.push(item);
    return this.#start(item, at);
  }

  #start(item: Item, at: number): ServerEvent[] {
    if (item.startedAt !== undefined) return [];
    item.startedAt = at;
    return [{ type: 'input_audio_buffer.speech_started', audio_start_ms: milli(at), item_id: item.id }];
  }

  #stop(item: Item | undefined, at: number): ServerEvent[] {
    if (!item || item.startedAt === undefined || item.stoppedAt !== undefined) return [];
    item.stoppedAt = Math.max(at, item.startedAt);
    return [{ type: 'input_audio_buffer.speech_stopped', audio_end_ms: milli(item.stoppedAt), item_id: item.id }];
  }

  /** Returns the item of words that start at `start`, and the events that complete items before it. */
  #itemAt(start: number): { item: Item; events: ServerEvent[] } {
    const [request] = this.#pending;
    if (request?.kind === 'commit') return { item: request.item, events: [] };
    const events: ServerEvent[] = [];
    for (;;) {
      const [first, second] = this.#open;
      if (!first) {
        const item = this.#create();
        this.#open.push(item);
        return { item, events };
      }
      const isBehind = second && first.stoppedAt !== undefined && start >= first.stoppedAt;
      if (!isBehind) return { item: first, events };
      events.push(...this.#passOver());
    }
  }

  #addInterim(interim: Interim): ServerEvent[] {
    const { item, events } = this.#itemAt(interim.start);
    const began = this.#options.turns() && !this.#isCommitted(item) ? this.#start(item, interim.start) : [];
    const words = interim.words.slice(0, interim.stable);
    return [...events, ...began, ...this.#sendDelta(item, appendWords(item.text, stableText(interim)), words)];
  }

  #addSegment(segment: Segment): ServerEvent[] {
    const { item, events } = this.#itemAt(segment.start);
    const isCommitted = this.#isCommitted(item);
    const cut = this.#options.turns() && !isCommitted;
    if (cut) {
      events.push(...this.#start(item, segment.start), ...this.#stop(item, segment.end), ...this.#announce(item));
    }
    const before = item.text;
    item.text = appendWords(before, segment.text);
    events.push(...this.#sendDelta(item, item.text, segment.words));
    item.segments.push(segment);
    item.logprobs.push(...logprobsOf(segment.words, before));
    if (!cut) return events;
    this.#open = this.#open.filter((one) => one !== item);
    item.seconds = (item.stoppedAt ?? segment.end) - (item.startedAt ?? segment.start);
    const [request] = this.#pending;
    if (request?.kind === 'flush') request.answered = true;
    return [...events, ...this.#complete(item)];
  }

  #isCommitted(item: Item): boolean {
    return this.#pending.some((request) => request.kind === 'commit' && request.item === item);
  }

  /** Sends a delta with the new part of `text`; none when `text` no longer starts with the sent text. */
  #sendDelta(item: Item, text: string, words: Segment['words']): ServerEvent[] {
    if (!text.startsWith(item.sentText) || text.length === item.sentText.length) return [];
    const delta = text.slice(item.sentText.length);
    const before = item.sentText;
    item.sentText = text;
    const own = words.slice(-wordsIn(delta).length);
    const logprobs = this.#options.logprobs() ? { logprobs: logprobsOf(own, before) } : {};
    return [{ type: `${PREFIX}.delta`, item_id: item.id, content_index: 0, delta, ...logprobs }];
  }

  #announce({ id }: Item): ServerEvent[] {
    const previous_item_id = this.#previous;
    this.#previous = id;
    const content = [{ type: 'input_audio', transcript: null }];
    const item = { id, object: 'realtime.item', type: 'message', status: 'completed', role: 'user', content };
    const committed = { type: 'input_audio_buffer.committed', previous_item_id, item_id: id };
    return [
      committed,
      { type: 'conversation.item.added', previous_item_id, item },
      { type: 'conversation.item.done', previous_item_id, item },
    ];
  }

  /** Times of a transcript, seconds of the session, as `verbose_json` names them. */
  #showTimes(segments: readonly Segment[]) {
    const words = segments.flatMap((segment) => segment.words);
    return {
      ...(this.#options.times('segment') && {
        segments: segments.map(({ text, start, end }) => ({ text, start: round(start), end: round(end) })),
      }),
      ...(this.#options.times('word') && {
        words: words.map(({ word, start, end }) => ({ word, start: round(start), end: round(end) })),
      }),
    };
  }

  #complete({ id, text, seconds, logprobs, segments }: Item): ServerEvent[] {
    const body = { item_id: id, content_index: 0, transcript: text };
    const usage = { type: 'duration', seconds: round(seconds) };
    return [
      {
        type: `${PREFIX}.completed`,
        ...body,
        ...(this.#options.logprobs() && { logprobs }),
        ...this.#showTimes(segments),
        ...(this.#language !== undefined && { language: this.#language }),
        usage,
      },
    ];
  }

  #answer(id: number): ServerEvent[] {
    const index = this.#pending.findIndex((request) => request.id === id);
    if (index < 0) return [];
    const [request] = this.#pending.splice(index, 1);
    if (request?.kind === 'commit') return this.#complete(request.item);
    if (request?.kind === 'clear') {
      this.#open = [];
      return [{ type: 'input_audio_buffer.cleared' }];
    }
    if (!request || request.answered) return [];
    // A commit without speech is answered by an empty item.
    const item = this.#open.shift() ?? this.#create();
    return [...this.#announce(item), ...this.#complete(item)];
  }
}
