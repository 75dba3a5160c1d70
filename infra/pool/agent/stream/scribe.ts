import { limits } from '../../../../shared/limits.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import type { LinkEvent, StreamOptions } from '../../../../shared/stream/link.ts';
import type { Recogniser } from '../segment.ts';
import { MODEL_RATE } from '../sound/mono.ts';
import type { Capture } from './hearing.ts';
import { createSequence, type RebuildCause, type SequenceParts } from './sequence.ts';
import { afterUtterance } from './stall.ts';
import type { LiveUtterance, WindowShape } from './utterance.ts';
import { createWords } from './words.ts';

/** What was said last: until nothing follows for a while, and whether that was told. */
export interface LastWord {
  readonly end: number;
  readonly told: boolean;
}

type Item =
  | { readonly type: 'utterance'; readonly utterance: LiveUtterance }
  | { readonly type: 'capture'; readonly capture: Capture }
  | { readonly type: 'event'; readonly event: LinkEvent };

export interface ScribeParts extends Omit<SequenceParts, 'onStep'> {
  readonly recogniser: Recogniser;
  readonly options: StreamOptions;
  /** Number of the next segment. */
  readonly index: number;
  readonly lastWord: LastWord | undefined;
  readonly send: (event: LinkEvent) => void;
  /** Interims are not worth waiting for: none is made while the edge does not read. */
  readonly mayInterim: () => boolean;
  readonly checkpoint: (capture: Capture, index: number, lastWord: LastWord | undefined) => void;
  /** A window was answered; how far that is, in seconds of the session. */
  readonly onWindow: (until: number) => void;
  readonly onUtterance: (seconds: number) => void;
}

/**
 * Writes down what was said: takes utterances in order, one at a time and one window at a time, and sends what becomes
 * of them. Whatever has to come after an utterance waits behind it. Ends with a refusal when the engine is given up.
 */
export function createScribe(parts: ScribeParts) {
  const { recogniser, live, signal, send } = parts;
  let { options, index, lastWord } = parts;
  const items: Item[] = [];
  let current: LiveUtterance | undefined;
  /** Samples of the current one that were recognised. */
  let done = 0;
  let ended = false;
  /** How far it was heard, in seconds. */
  let heardUntil = 0;
  let wake = () => {};
  /** Nothing waits to be written, and nothing is being written. */
  let idle = false;
  let onRoom: (() => void)[] = [];
  /** Of the window that is being recognised: there is one at a time, and they are long. */
  const room = new Float32Array(live.windowSamples);

  function add(item: Item) {
    // Of two checkpoints with nothing in between the later one is better.
    if (item.type === 'capture' && items.at(-1)?.type === 'capture') items.pop();
    // Nothing is before it: there is no need to wake anybody.
    if (idle && item.type !== 'utterance' && !signal.aborted) return tell(item);
    items.push(item);
    wake();
  }

  function tell(item: Exclude<Item, { type: 'utterance' }>) {
    if (item.type === 'event') send(item.event);
    else parts.checkpoint(item.capture, index, lastWord);
  }

  function waiting(): number {
    let samples = current ? current.samples() - done : 0;
    for (const item of items) if (item.type === 'utterance') samples += item.utterance.samples();
    return samples;
  }
  const full = () =>
    waiting() > limits.streamBacklogSeconds.value * MODEL_RATE || items.length > limits.streamMarks.value;

  function tellRoom() {
    if (onRoom.length === 0 || (full() && !signal.aborted)) return;
    const told = onRoom;
    onRoom = [];
    for (const tell of told) tell();
  }

  /** Nobody has said a word for a while, up to `until`, in seconds. */
  function judgeSilence(until: number) {
    const { utteranceEndMs } = options;
    if (!lastWord || lastWord.told || utteranceEndMs === undefined) return;
    if (until < lastWord.end + utteranceEndMs / 1_000) return;
    lastWord = { end: lastWord.end, told: true };
    send({ type: 'utterance_end', lastWordEnd: lastWord.end });
  }

  /** Nothing that waits to be written can hold a word any more. */
  function judgeHeard() {
    if (!current && !items.some((item) => item.type === 'utterance')) judgeSilence(heardUntil);
  }

  async function transcribe(utterance: LiveUtterance): Promise<Result<undefined>> {
    const sequence = createSequence(utterance, { ...parts, onRebuild });
    const words = createWords(recogniser, utterance.start);
    try {
      for (let number = 0; ; number++) {
        const window = await nextWindow(utterance, number, live);
        if (!window) return ok(undefined);
        const scores = await sequence.score(number, window);
        if (!scores.ok) return scores;
        const taken = words.push(scores.value);
        if (!taken.ok) return taken;
        release();
        holdUntil = parts.clock.now() + limits.sequenceHoldMs.value;
        done = number * live.hopSamples + window.samples.length;
        parts.onWindow(words.until());
        tellRoom();
        if (utterance.discarded()) return ok(undefined);
        if (window.last) break;
        look(utterance, words);
      }
      parts.stall.limit = afterUtterance(parts.stall.limit);
      const closing = utterance.closing();
      if (!closing) throw new Error('an utterance without an end');
      parts.onUtterance(closing.samples / MODEL_RATE);
      const segments = await words.finish(closing, utterance.samples(), index);
      if (!segments.ok) return segments;
      for (const segment of segments.value) {
        send(segment);
        index++;
        lastWord = { end: segment.end, told: false };
      }
      return ok(undefined);
    } finally {
      sequence.abandon();
    }
  }

  function onRebuild(cause: RebuildCause) {
    bursts ||= cause === 'parked';
    parts.onRebuild?.(cause);
  }

  function look(utterance: LiveUtterance, words: ReturnType<typeof createWords>) {
    const wanted = options.interim && parts.mayInterim();
    if (!wanted && options.utteranceEndMs === undefined) return;
    const { event, lastWordEnd } = words.interim(index, utterance.samples());
    if (event && wanted) send(event);
    if (lastWordEnd === undefined) judgeSilence(words.until());
  }

  /** `undefined` when nobody wants the utterance any more. */
  async function nextWindow(utterance: LiveUtterance, number: number, shape: WindowShape) {
    for (;;) {
      if (signal.aborted || utterance.discarded()) return undefined;
      const rest = number > 0 && bursts && !utterance.has(number + 1, shape) ? holdUntil - parts.clock.now() : 0;
      if (rest <= 0) {
        const window = utterance.window(number, shape, room);
        if (window) return window;
      }
      await pause((resume) => {
        utterance.whenReady(rest > 0 ? number + 1 : number, shape, resume);
        if (rest > 0) void hold(rest).then(resume);
      });
    }
  }

  /** Sound comes in pieces with pauses that sequences do not survive: the last window of each waits for the pause. */
  let bursts = false;
  let holdUntil = 0;
  let release = () => {};

  /** One at a time: the one before is over, or nobody waits for it. */
  function hold(milliseconds: number): Promise<void> {
    release();
    return new Promise((resolve) => {
      release = parts.clock.after(milliseconds, resolve);
    });
  }

  /** Of the one pause at a time. A promise that lives as long as the stream would keep every race it was ever in. */
  let endPause = () => {};
  signal.addEventListener('abort', () => endPause(), { once: true });

  function pause(until: (resume: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      endPause = resolve;
      until(resolve);
    });
  }

  async function write(utterance: LiveUtterance): Promise<Result<undefined>> {
    // Sound may come faster than it is written down: silence before and after an utterance is judged when it is known
    // to hold no word.
    judgeSilence(utterance.start / MODEL_RATE);
    current = utterance;
    done = 0;
    const result = await transcribe(utterance);
    utterance.release();
    current = undefined;
    judgeHeard();
    return result;
  }

  return {
    /** Works until `finish` was called and all is written, or the signal aborts. */
    async run(): Promise<Result<undefined>> {
      while (!signal.aborted) {
        const item = items.shift();
        if (item) {
          const settled = item.type === 'utterance' ? await write(item.utterance) : ok(tell(item));
          tellRoom();
          if (!settled.ok) return settled;
          continue;
        }
        if (ended) break;
        idle = true;
        await pause((resume) => {
          wake = () => {
            idle = false;
            resume();
          };
        });
        idle = false;
      }
      return ok(undefined);
    },
    utterance: (utterance: LiveUtterance) => add({ type: 'utterance', utterance }),
    capture: (capture: Capture) => add({ type: 'capture', capture }),
    event: (event: LinkEvent) => add({ type: 'event', event }),
    finish() {
      ended = true;
      wake();
    },
    /** So much was heard, in seconds: nothing that waits to be written can hold a word any more. */
    heard(until: number) {
      heardUntil = until;
      judgeHeard();
    },
    options(next: StreamOptions) {
      options = next;
    },
    /** So much waits to be written that nothing more should be heard. */
    full,
    /** Resolves when more may be heard. */
    room(): Promise<void> {
      if (!full() || signal.aborted) return Promise.resolve();
      return new Promise((resolve) => onRoom.push(resolve));
    },
    segments: () => index,
  };
}

export type Scribe = ReturnType<typeof createScribe>;
