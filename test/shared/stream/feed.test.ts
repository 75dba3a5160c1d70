import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limits } from '../../../shared/limits.ts';
import { Feed } from '../../../shared/stream/feed.ts';
import { Said } from '../../../shared/stream/said.ts';
import { HearingModel, type Report, segmentOf } from './hearing-model.ts';

const format = { encoding: 'mulaw', rate: 8_000, channels: 1 } as const;
const options = { interim: false, endpointingMs: 500 } as const;
const letters = (text: string) => new TextEncoder().encode(text);

type Step =
  | { readonly say: string }
  | { readonly ask: 'finalize' | 'clear' }
  | { readonly options: boolean }
  | { readonly pump: number }
  | { readonly arrive: number }
  | { readonly lose: true };

/** An edge and whichever agent it has, with everything that can be under way between them when one is lost. */
class Stream {
  readonly feed = new Feed(format, options);
  readonly said = new Said(0);
  readonly told: string[] = [];
  #agent = new HearingModel();
  /** Events of the agent that have not come to the edge. */
  #under: Report[] = [];
  #ids = 0;
  losses = 0;

  step(step: Step): void {
    if ('say' in step) expect(this.feed.take(letters(step.say))).toBe(true);
    else if ('ask' in step) this.feed.ask(step.ask, this.#ids++);
    else if ('options' in step) this.feed.change({ ...options, interim: step.options });
    else if ('pump' in step) this.pump(step.pump);
    else if ('arrive' in step) this.arrive(step.arrive);
    else this.lose();
  }

  pump(most = Number.POSITIVE_INFINITY): boolean {
    let any = false;
    for (let left = most; left > 0; left--) {
      const portion = this.feed.next();
      if (!portion) break;
      any = true;
      this.#under.push(...this.#agent.hear(portion));
    }
    return any;
  }

  arrive(most = Number.POSITIVE_INFINITY): boolean {
    let any = false;
    for (let left = most; left > 0; left--) {
      const event = this.#under.shift();
      if (!event) break;
      any = true;
      this.#take(event);
    }
    return any;
  }

  lose(): void {
    this.losses += 1;
    this.#under = [];
    const { from } = this.feed.origin();
    this.feed.rewind();
    this.#agent = new HearingModel(from);
  }

  finish(): void {
    this.feed.end();
    while (this.pump() || this.arrive()) {
      // Until nothing is said on either side.
    }
  }

  #take(event: Report): void {
    if (event.type === 'heard') expect(this.feed.heard(event.position, event.time)).toBe(true);
    else if (event.type === 'checkpoint') expect(this.feed.settle(event)).toBe(true);
    else if (event.type === 'segment') {
      const judged = this.said.judge(segmentOf(event));
      expect(judged).not.toBe('skipped');
      if (judged === 'new') this.told.push(`${event.index} ${event.text} ${event.start} ${event.end}`);
    } else if (event.type === 'final') this.told.push(`final ${event.segments} ${event.time}`);
    else if (this.feed.answered(event.type === 'finalized' ? 'finalize' : 'clear', event.id)) {
      this.told.push(`${event.type} ${event.id}`);
    }
  }
}

const text = fc.stringMatching(/^[ab .]{1,8}$/);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ say: text }) },
  fc.record({ ask: fc.constantFrom('finalize' as const, 'clear' as const) }),
  fc.record({ options: fc.boolean() }),
  { weight: 4, arbitrary: fc.record({ pump: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 4, arbitrary: fc.record({ arrive: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ lose: fc.constant(true as const) }) },
);

describe('R1 what a client said, on its way to whichever agent', () => {
  it('says the same, at the same times, whatever agents are lost in between', () => {
    let losses = 0;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const [disturbed, calm] = [new Stream(), new Stream()];
        for (const one of steps) {
          disturbed.step(one);
          if ('pump' in one || 'arrive' in one || 'lose' in one) continue;
          calm.step(one);
          calm.pump();
          calm.arrive();
        }
        disturbed.finish();
        calm.finish();
        expect(disturbed.told.filter((told) => !told.startsWith('cleared'))).toEqual(
          calm.told.filter((told) => !told.startsWith('cleared')),
        );
        expect(new Set(disturbed.told)).toEqual(new Set(calm.told));
        losses += disturbed.losses;
      }),
      { numRuns: 2_000 },
    );
    expect(losses).toBeGreaterThan(300);
  });

  it('keeps nothing that is settled', () => {
    const stream = new Stream();
    for (let round = 0; round < 1_000; round++) {
      stream.step({ say: 'one two three. ' });
      stream.step({ ask: 'finalize' });
      stream.pump();
      stream.arrive();
      expect(stream.feed.unsettled).toBeLessThanOrEqual(1);
    }
    expect(stream.feed.position).toBe(15_000);
  });

  it('has its bound, and takes a message whole or not at all', () => {
    const feed = new Feed(format, options);
    const piece = new Uint8Array(100_000);
    let taken = 0;
    while (feed.take(piece)) taken += 1;
    expect(taken).toBe(Math.floor(limits.streamRingBytes.value / 100_000));
    expect(feed.position).toBe(taken * 100_000);
    expect(feed.time).toBeCloseTo((taken * 100_000) / 8_000, 6);
    expect(feed.take(new Uint8Array(limits.streamRingBytes.value - feed.position))).toBe(true);
    expect(feed.take(new Uint8Array(1))).toBe(false);
  });

  it('joins small messages that wait, but no packets', () => {
    const read = (encoding: 'mulaw' | 'opus') => {
      const feed = new Feed({ encoding, rate: 48_000, channels: 1 }, options);
      for (const word of ['a', 'bc', 'def']) feed.take(letters(word));
      const portions = [];
      for (let portion = feed.next(); portion; portion = feed.next()) {
        if (portion.kind === 'audio') portions.push([portion.position, new TextDecoder().decode(portion.audio)]);
      }
      return portions;
    };
    expect(read('mulaw')).toEqual([[0, 'abcdef']]);
    expect(read('opus')).toEqual([
      [0, 'a'],
      [1, 'bc'],
      [3, 'def'],
    ]);
  });

  it('sends a message that is larger than the window when nothing else is under way', () => {
    const feed = new Feed(format, options);
    feed.take(new Uint8Array(limits.streamMessageBytes.value));
    let sent = 0;
    for (let portion = feed.next(); portion; portion = feed.next()) {
      if (portion.kind === 'audio') sent += portion.audio.length;
    }
    expect(sent).toBeLessThanOrEqual(limits.streamWindowBytes.value);
    expect(feed.heard(sent, 1)).toBe(true);
    expect(feed.next()).toBeDefined();
  });

  it('is told by the agent how long Ogg is, which says so of itself too late', () => {
    const feed = new Feed({ encoding: 'ogg-opus', rate: 48_000, channels: 1 }, options);
    const hear = (bytes: number, time: number) => {
      feed.take(new Uint8Array(bytes));
      while (feed.next()) {
        // All of it goes.
      }
      expect(feed.heard(feed.position, time)).toBe(true);
    };
    hear(4_000, 2);
    expect([feed.time, feed.taken]).toEqual([2, 2]);
    hear(1_000, 2.5);
    expect([feed.time, feed.taken]).toEqual([2.5, 2.5]);
  });

  it('§3-18 takes questions when it is full of messages, asks for relief before, and says when it cannot', () => {
    const feed = new Feed(format, options);
    const byte = letters('x');
    const [items, relief] = [limits.streamRingItems.value, limits.streamReliefItems.value];
    for (let at = 0; at < items; at++) {
      expect(feed.take(byte)).toBe(true);
      if (at < relief - 2 || at > relief) continue;
      while (feed.next()) feed.heard(at + 1, 0);
      expect(feed.crowded).toBe(at >= relief - 1);
    }
    expect(feed.take(byte)).toBe(false);
    const marks = limits.streamRingMarks.value;
    for (let id = 0; id < marks - 1; id++) expect(feed.ask('finalize', id)).toBe('asked');
    expect(feed.change(options)).toBe(true);
    expect([feed.ask('clear', 1), feed.ask('finalize', 0), feed.change(options)]).toEqual(['full', 'asked', false]);
  });

  it('C10 asks for no relief while audio waits to be sent, however much', () => {
    const feed = new Feed(format, options);
    const mebibyte = new Uint8Array(2 ** 20);
    for (let taken = 0; taken <= limits.streamReliefBytes.value; taken += mebibyte.length) feed.take(mebibyte);
    for (let sent = 0; sent < feed.position; feed.heard(sent, 0)) {
      expect(feed.crowded).toBe(false);
      for (let portion = feed.next(); portion; portion = feed.next()) {
        if (portion.kind === 'audio') sent = portion.position + portion.audio.length;
      }
    }
    expect(feed.crowded).toBe(true);
  });

  it('C10 R1 asks for no relief while utterances wait to be heard or recognised', () => {
    const feed = new Feed(format, options);
    const end = limits.streamReliefBytes.value + 64;
    feed.take(new Uint8Array(end));
    for (let sent = 0; sent < end; feed.heard(sent - 1, 0, 0)) {
      for (let portion = feed.next(); portion; portion = feed.next()) {
        if (portion.kind === 'audio') sent = portion.position + portion.audio.length;
      }
    }
    expect(feed.crowded).toBe(false);
    const settle = (position: number) => feed.settle({ position, time: 0, index: 0, state: '' });
    // The checkpoints up to 32 come without more audio, one after the other.
    expect(feed.heard(end, 0, 32)).toBe(true);
    for (const position of [0, 16, 31]) expect([settle(position), feed.crowded]).toEqual([true, false]);
    // What is left is one open utterance.
    expect([settle(32), feed.crowded]).toEqual([true, true]);
    expect(feed.heard(end, 0, end + 1)).toBe(false);
  });

  it('remembers answers, and a bounded number of them', () => {
    const feed = new Feed(format, options);
    expect(feed.ask('finalize', 1)).toBe('asked');
    expect(feed.ask('finalize', 1)).toBe('asked');
    expect(feed.answered('finalize', 1)).toBe(true);
    expect(feed.answered('finalize', 1)).toBe(false);
    expect(feed.ask('finalize', 1)).toBe('answered');
    expect(feed.ask('clear', 1)).toBe('asked');
    for (let id = 2; id < limits.streamAnswers.value + 2; id++) {
      feed.ask('finalize', id);
      feed.answered('finalize', id);
    }
    expect(feed.ask('finalize', 1)).toBe('asked');
  });
});

describe('seconds that were heard', () => {
  it('are those that an agent took, of what waits none', () => {
    const feed = new Feed(format, options);
    feed.take(new Uint8Array(80_000));
    expect([feed.taken, feed.heardSeconds]).toEqual([10, 0]);
    feed.next();
    feed.heard(16_000, 2);
    expect([feed.taken, feed.heardSeconds]).toEqual([10, 2]);
    feed.rewind();
    expect(feed.heardSeconds).toBe(2);
    feed.lasted(10);
    expect(feed.heardSeconds).toBe(10);
  });
});

describe('seconds that were taken', () => {
  it('are those the agent heard where only it can tell', () => {
    const feed = new Feed({ encoding: 'ogg-opus', rate: 48_000, channels: 1 }, options);
    feed.take(letters('a page'));
    feed.next();
    feed.heard(6, 2);
    expect(feed.taken).toBe(2);
    feed.take(letters('another'));
    expect(feed.taken).toBe(2);
    // The last word of it.
    feed.lasted(5);
    expect(feed.taken).toBe(5);
  });

  it('are counted by what is sent where that tells, whatever the agent says', () => {
    const feed = new Feed(format, options);
    feed.take(letters('x'.repeat(800)));
    feed.lasted(99);
    expect(feed.taken).toBe(0.1);
  });

  it('go on from a checkpoint', () => {
    const feed = new Feed(format, options, { position: 8_000, time: 1, index: 0, state: '' });
    feed.take(letters('x'.repeat(800)));
    expect(feed.taken).toBeCloseTo(1.1, 9);
  });
});
