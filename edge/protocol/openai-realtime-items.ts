import type { SessionEvent } from './live-protocol.ts';
import { stableText } from './stable-text.ts';

type Interim = Extract<SessionEvent, { type: 'interim' }>;
type Segment = Extract<SessionEvent, { type: 'segment' }>;

/** An event for the client, without its id. */
export type Told = { readonly type: string } & Readonly<Record<string, unknown>>;

/** A piece of sound that becomes one item of the conversation. */
interface Item {
  readonly id: string;
  /** When speech was heard to begin and to end, seconds. */
  startedAt: number | undefined;
  stoppedAt: number | undefined;
  /** Text of the segments so far, and how much of it was told in deltas. */
  text: string;
  told: string;
  logprobs: Logprob[];
  words: Segment['words'][number][];
  seconds: number;
}

/** What the client asked for and the agent has not answered yet, oldest first. */
type Asked =
  /** A commit without turn detection: the item was announced at once, all segments until the answer are its own. */
  | { readonly id: number; readonly kind: 'commit'; readonly item: Item }
  /** A commit besides turn detection: whatever is cut first answers it. */
  | { readonly id: number; readonly kind: 'flush'; answered: boolean }
  | { readonly id: number; readonly kind: 'clear' };

interface Logprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
}

export interface ItemsOptions {
  readonly session: string;
  /** The retired shape says `conversation.item.created`. */
  readonly beta: () => boolean;
  /** Whether turns are detected: then speech makes items by itself. */
  readonly turns: () => boolean;
  readonly logprobs: () => boolean;
  /** NVIDIA's client prints words with their times. */
  readonly words: () => boolean;
}

const PREFIX = 'conversation.item.input_audio_transcription';
export const COMPLETED = `${PREFIX}.completed`;
const milli = (seconds: number) => Math.round(seconds * 1_000);
const round = (seconds: number) => milli(Math.max(0, seconds)) / 1_000;
const join = (before: string, text: string) => (before === '' || text === '' ? before + text : `${before} ${text}`);

/** A logarithm that JSON can hold. */
const CERTAINLY_NOT = -100;

/** As NVIDIA's service tells them: times in milliseconds, one speaker. */
const showWords = (words: Segment['words']) => ({
  words_info: {
    words: words.map(({ word, start, end, confidence }) => {
      return { word, start_time: milli(start), end_time: milli(end), confidence, speaker_tag: 0 };
    }),
  },
  is_last_result: false,
});

/** Words stand for tokens: the smallest thing that the decoder's posterior is about. */
const logprobsOf = (words: readonly { word: string; confidence: number }[], isFirst: boolean): Logprob[] =>
  words.map(({ word, confidence }, index) => {
    const token = isFirst && index === 0 ? word : ` ${word}`;
    const logprob = Math.max(CERTAINLY_NOT, Math.log(confidence));
    return { token, logprob, bytes: [...new TextEncoder().encode(token)] };
  });

/**
 * From what the session tells to the items of an OpenAI conversation. What holds for each item, whatever the agent
 * says: its events come in the customary order, its deltas joined are its transcript, and it is completed or failed
 * once it was committed.
 */
export class Items {
  readonly #options: ItemsOptions;
  /** Items nobody committed yet; more than one only while the words of an earlier one are still to come. */
  #open: Item[] = [];
  readonly #asked: Asked[] = [];
  #previous: string | null = null;
  #count = 0;

  constructor(options: ItemsOptions) {
    this.#options = options;
  }

  /** Commits and clears without an answer. */
  get waiting(): number {
    return this.#asked.length;
  }

  /** The client wants what it sent so far transcribed; `seconds` of it. */
  commit(id: number, seconds: number): Told[] {
    if (this.#options.turns()) {
      this.#asked.push({ id, kind: 'flush', answered: false });
      return [];
    }
    const item = this.#open.shift() ?? this.#create();
    this.#open = [];
    item.seconds = seconds;
    this.#asked.push({ id, kind: 'commit', item });
    return this.#announce(item);
  }

  clear(id: number): void {
    this.#asked.push({ id, kind: 'clear' });
  }

  render(event: SessionEvent): Told[] {
    if (event.type === 'speech_started') return this.#options.turns() ? this.#begin(event.at) : [];
    if (event.type === 'speech_ended') return this.#options.turns() ? this.#stop(this.#open.at(-1), event.at) : [];
    if (event.type === 'interim') return this.#hint(event);
    if (event.type === 'segment') return this.#take(event);
    if (event.type === 'finalized' || event.type === 'cleared') return this.#answer(event.id);
    return [];
  }

  /** Nothing more will be said of what came before: speech without words was noise, and its item has its end, too. */
  completeBefore(time: number): Told[] {
    const told: Told[] = [];
    while (this.#open[0]?.stoppedAt !== undefined && this.#open[0].stoppedAt <= time) told.push(...this.#passOver());
    return told;
  }

  /** The first item has no words. */
  #passOver(): Told[] {
    const item = this.#open.shift();
    if (!item) return [];
    item.seconds = (item.stoppedAt ?? 0) - (item.startedAt ?? 0);
    const [asked] = this.#asked;
    if (asked?.kind === 'flush') asked.answered = true;
    return [...this.#announce(item), ...this.#complete(item)];
  }

  /** All was said: what was announced has its end. */
  finish(): Told[] {
    return this.#asked.splice(0).flatMap((asked) => (asked.kind === 'commit' ? this.#complete(asked.item) : []));
  }

  /** Fails every item that the client knows and that was not completed: its words are lost. */
  fail(error: Readonly<Record<string, unknown>>): Told[] {
    const committed = this.#asked.splice(0).flatMap((asked) => (asked.kind === 'commit' ? [asked.item] : []));
    const open = this.#open.splice(0).filter(({ startedAt, told }) => startedAt !== undefined || told !== '');
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
    return { id, startedAt: undefined, stoppedAt: undefined, text: '', told: '', logprobs: [], words: [], seconds: 0 };
  }

  #begin(at: number): Told[] {
    const last = this.#open.at(-1);
    if (last && last.startedAt !== undefined && last.stoppedAt === undefined) return [];
    const item = last && last.startedAt === undefined ? last : this.#create();
    if (item !== last) this.#open.push(item);
    return this.#start(item, at);
  }

  #start(item: Item, at: number): Told[] {
    if (item.startedAt !== undefined) return [];
    item.startedAt = at;
    return [{ type: 'input_audio_buffer.speech_started', audio_start_ms: milli(at), item_id: item.id }];
  }

  #stop(item: Item | undefined, at: number): Told[] {
    if (!item || item.startedAt === undefined || item.stoppedAt !== undefined) return [];
    item.stoppedAt = Math.max(at, item.startedAt);
    return [{ type: 'input_audio_buffer.speech_stopped', audio_end_ms: milli(item.stoppedAt), item_id: item.id }];
  }

  /** The item that words from `start` on belong to, and the end of those before it that had none. */
  #itemAt(start: number): { item: Item; told: Told[] } {
    const [asked] = this.#asked;
    if (asked?.kind === 'commit') return { item: asked.item, told: [] };
    const told: Told[] = [];
    for (;;) {
      const [first, second] = this.#open;
      if (!first) {
        const item = this.#create();
        this.#open.push(item);
        return { item, told };
      }
      const isBehind = second && first.stoppedAt !== undefined && start >= first.stoppedAt;
      if (!isBehind) return { item: first, told };
      told.push(...this.#passOver());
    }
  }

  #hint(interim: Interim): Told[] {
    const { item, told } = this.#itemAt(interim.start);
    const began = this.#options.turns() && !this.#isAsked(item) ? this.#start(item, interim.start) : [];
    const words = interim.words.slice(0, interim.stable);
    return [...told, ...began, ...this.#tell(item, join(item.text, stableText(interim)), words)];
  }

  #take(segment: Segment): Told[] {
    const { item, told } = this.#itemAt(segment.start);
    const isAsked = this.#isAsked(item);
    const cut = this.#options.turns() && !isAsked;
    if (cut) {
      told.push(...this.#start(item, segment.start), ...this.#stop(item, segment.end), ...this.#announce(item));
    }
    item.text = join(item.text, segment.text);
    told.push(...this.#tell(item, item.text, segment.words));
    item.logprobs.push(...logprobsOf(segment.words, item.logprobs.length === 0));
    item.words.push(...segment.words);
    if (!cut) return told;
    this.#open = this.#open.filter((one) => one !== item);
    item.seconds = (item.stoppedAt ?? segment.end) - (item.startedAt ?? segment.start);
    const [asked] = this.#asked;
    if (asked?.kind === 'flush') asked.answered = true;
    return [...told, ...this.#complete(item)];
  }

  #isAsked(item: Item): boolean {
    return this.#asked.some((asked) => asked.kind === 'commit' && asked.item === item);
  }

  /** Adds to the deltas what `text` has more than was told; nothing when they have gone apart. */
  #tell(item: Item, text: string, words: Segment['words']): Told[] {
    if (!text.startsWith(item.told) || text.length === item.told.length) return [];
    const delta = text.slice(item.told.length);
    const isFirst = item.told === '';
    item.told = text;
    const count = delta.split(' ').filter(Boolean).length;
    const logprobs = this.#options.logprobs() ? { logprobs: logprobsOf(words.slice(-count), isFirst) } : {};
    return [{ type: `${PREFIX}.delta`, item_id: item.id, content_index: 0, delta, ...logprobs }];
  }

  #announce({ id }: Item): Told[] {
    const previous_item_id = this.#previous;
    this.#previous = id;
    const content = [{ type: 'input_audio', transcript: null }];
    const item = { id, object: 'realtime.item', type: 'message', status: 'completed', role: 'user', content };
    const committed = { type: 'input_audio_buffer.committed', previous_item_id, item_id: id };
    if (this.#options.beta()) return [committed, { type: 'conversation.item.created', previous_item_id, item }];
    return [
      committed,
      { type: 'conversation.item.added', previous_item_id, item },
      { type: 'conversation.item.done', previous_item_id, item },
    ];
  }

  #complete({ id, text, seconds, logprobs, words }: Item): Told[] {
    const body = { item_id: id, content_index: 0, transcript: text };
    const usage = { type: 'duration', seconds: round(seconds) };
    return [
      {
        type: COMPLETED,
        ...body,
        ...(this.#options.logprobs() && { logprobs }),
        usage,
        ...(this.#options.words() && showWords(words)),
      },
    ];
  }

  #answer(id: number): Told[] {
    const index = this.#asked.findIndex((asked) => asked.id === id);
    if (index < 0) return [];
    const [asked] = this.#asked.splice(index, 1);
    if (asked?.kind === 'commit') return this.#complete(asked.item);
    if (asked?.kind === 'clear') {
      this.#open = [];
      return [{ type: 'input_audio_buffer.cleared' }];
    }
    if (!asked || asked.answered) return [];
    // Nothing was said: the commit is answered all the same.
    const item = this.#open.shift() ?? this.#create();
    return [...this.#announce(item), ...this.#complete(item)];
  }
}
