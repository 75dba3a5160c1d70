import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { STREAM_RING_BYTES, STREAM_RING_ITEMS_MAX, STREAM_RING_MARKS_MAX } from '../../../edge/stream/audio-ring.ts';
import { STREAM_MESSAGE_BYTES } from '../../../edge/stream/client-socket.ts';
import { EventFilter } from '../../../edge/stream/event-filter.ts';
import { STREAM_ANSWERS_MAX } from '../../../edge/stream/pending-requests.ts';
import {
  type Frame,
  memoryFor,
  ReplayBuffer,
  STREAM_RELIEF_BYTES,
  STREAM_RELIEF_ITEMS,
  STREAM_WINDOW_BYTES,
} from '../../../edge/stream/replay-buffer.ts';
import type { StreamFormat } from '../../../shared/stream/format.ts';
import { AgentModel, type Report, segmentOf } from './agent-model.ts';

const format = { encoding: 'mulaw', rate: 8_000, channels: 1 } as const;
const options = { interim: false, endpointingMs: 500 } as const;
const letters = (text: string) => new TextEncoder().encode(text);
const create = (change: Partial<StreamFormat> = {}) => new ReplayBuffer({ format: { ...format, ...change }, options });
const append = (buffer: ReplayBuffer, bytes: number, position?: number) =>
  buffer.append(new Uint8Array(bytes), position);
const full = { ok: false, refusal: { reason: 'backlog_full' } };

/** Sends every frame that the window allows. Returns the position behind the last one. */
function sendAll(buffer: ReplayBuffer, onFrame: (frame: Frame) => void = () => {}): number {
  let sent = 0;
  for (let frame = buffer.next(); frame; frame = buffer.next()) {
    onFrame(frame);
    if (frame.kind === 'audio') sent = frame.position + frame.audio.length;
  }
  return sent;
}

type Step =
  | { readonly say: string }
  | { readonly ask: 'finalize' | 'clear' }
  | { readonly options: boolean }
  | { readonly pump: number }
  | { readonly arrive: number }
  | { readonly lose: true };

/** An edge and its current agent, with frames and events in flight between them. */
class Stream {
  readonly buffer = create();
  readonly filter = new EventFilter(0);
  readonly events: string[] = [];
  #agent = new AgentModel();
  /** Events of the agent in flight. */
  #inFlight: Report[] = [];
  #ids = 0;
  losses = 0;

  step(step: Step): void {
    if ('say' in step) expect(this.buffer.append(letters(step.say)).ok).toBe(true);
    else if ('ask' in step) this.buffer.request(step.ask, this.#ids++);
    else if ('options' in step) this.buffer.setOptions({ ...options, interim: step.options });
    else if ('pump' in step) this.pump(step.pump);
    else if ('arrive' in step) this.arrive(step.arrive);
    else this.lose();
  }

  pump(most = Number.POSITIVE_INFINITY): boolean {
    let any = false;
    for (let left = most; left > 0; left--) {
      const frame = this.buffer.next();
      if (!frame) break;
      any = true;
      this.#inFlight.push(...this.#agent.receive(frame));
    }
    return any;
  }

  arrive(most = Number.POSITIVE_INFINITY): boolean {
    let any = false;
    for (let left = most; left > 0; left--) {
      const event = this.#inFlight.shift();
      if (!event) break;
      any = true;
      this.#receive(event);
    }
    return any;
  }

  lose(): void {
    this.losses += 1;
    this.#inFlight = [];
    const { from } = this.buffer.origin();
    this.buffer.rewind();
    this.#agent = new AgentModel(from);
  }

  finish(): void {
    this.buffer.end();
    while (this.pump() || this.arrive()) {
      // Runs until neither side sends.
    }
  }

  #receive(event: Report): void {
    if (event.type === 'heard') expect(this.buffer.acknowledge(event.position, event.time)).toBe(true);
    else if (event.type === 'checkpoint') expect(this.buffer.commit(event)).toBe(true);
    else if (event.type === 'segment') {
      const verdict = this.filter.check(segmentOf(event));
      expect(verdict).not.toBe('gap');
      if (verdict === 'new') this.events.push(`${event.index} ${event.text} ${event.start} ${event.end}`);
    } else if (event.type === 'final') this.events.push(`final ${event.segments} ${event.time}`);
    else if (this.buffer.answer(event.type === 'finalized' ? 'finalize' : 'clear', event.id)) {
      this.events.push(`${event.type} ${event.id}`);
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

describe('R1 the replay buffer', () => {
  it('yields the same events and times, whatever agents are lost', () => {
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
        expect(disturbed.events.filter((event) => !event.startsWith('cleared'))).toEqual(
          calm.events.filter((event) => !event.startsWith('cleared')),
        );
        expect(new Set(disturbed.events)).toEqual(new Set(calm.events));
        losses += disturbed.losses;
      }),
      { numRuns: 2_000 },
    );
    expect(losses).toBeGreaterThan(300);
  });

  it('drops everything before a checkpoint', () => {
    const stream = new Stream();
    for (let round = 0; round < 1_000; round++) {
      stream.step({ say: 'one two three. ' });
      stream.step({ ask: 'finalize' });
      stream.pump();
      stream.arrive();
      expect(stream.buffer.bufferedBytes).toBeLessThanOrEqual(1);
    }
    expect(stream.buffer.position).toBe(15_000);
  });

  it('is bounded, and takes a message whole or not at all', () => {
    const buffer = create();
    let taken = 0;
    while (append(buffer, 100_000).ok) taken += 1;
    expect(taken).toBe(Math.floor(STREAM_RING_BYTES / 100_000));
    expect(buffer.position).toBe(taken * 100_000);
    expect(buffer.clock.end).toBeCloseTo((taken * 100_000) / 8_000, 6);
    expect(append(buffer, STREAM_RING_BYTES - buffer.position).ok).toBe(true);
    expect(append(buffer, 1)).toMatchObject(full);
  });

  it('joins small buffered messages, but no packets', () => {
    const read = (encoding: 'mulaw' | 'opus') => {
      const buffer = create({ encoding, rate: 48_000 });
      for (const word of ['a', 'bc', 'def']) buffer.append(letters(word));
      const frames: [number, string][] = [];
      sendAll(buffer, (frame) => {
        if (frame.kind === 'audio') frames.push([frame.position, new TextDecoder().decode(frame.audio)]);
      });
      return frames;
    };
    expect(read('mulaw')).toEqual([[0, 'abcdef']]);
    expect(read('opus')).toEqual([
      [0, 'a'],
      [1, 'bc'],
      [3, 'def'],
    ]);
  });

  it('sends a message larger than the window when nothing is in flight', () => {
    const buffer = create();
    append(buffer, STREAM_MESSAGE_BYTES);
    const sent = sendAll(buffer);
    expect(sent).toBeLessThanOrEqual(STREAM_WINDOW_BYTES);
    expect(buffer.acknowledge(sent, 1)).toBe(true);
    expect(buffer.next()).toBeDefined();
  });

  it('§3-18 takes requests when full of messages, a bounded number of them', () => {
    const buffer = create();
    const [items, relief] = [STREAM_RING_ITEMS_MAX, STREAM_RELIEF_ITEMS];
    for (let at = 0; at < items; at++) {
      expect(append(buffer, 1).ok).toBe(true);
      if (at < relief - 2 || at > relief) continue;
      while (buffer.next()) buffer.acknowledge(at + 1, 0);
      expect(buffer.needsFinalize).toBe(at >= relief - 1);
    }
    expect(append(buffer, 1).ok).toBe(false);
    const marks = STREAM_RING_MARKS_MAX;
    for (let id = 0; id < marks - 1; id++) expect(buffer.request('finalize', id)).toBe('pending');
    expect(buffer.setOptions(options)).toBe(true);
    const rest = [buffer.request('clear', 1), buffer.request('finalize', 0), buffer.setOptions(options)];
    expect(rest).toEqual(['full', 'pending', false]);
  });

  it('C10 needs no finalize while audio waits to be sent, however much', () => {
    const buffer = create();
    for (let taken = 0; taken <= STREAM_RELIEF_BYTES; taken += 2 ** 20) append(buffer, 2 ** 20);
    for (let sent = 0; sent < buffer.position; buffer.acknowledge(sent, 0)) {
      expect(buffer.needsFinalize).toBe(false);
      sent = sendAll(buffer);
    }
    expect(buffer.needsFinalize).toBe(true);
  });

  it('C10 R1 needs no finalize while utterances wait to be received or recognised', () => {
    const buffer = create();
    const end = STREAM_RELIEF_BYTES + 64;
    append(buffer, end);
    for (let sent = 0; sent < end; buffer.acknowledge(sent - 1, 0, 0)) sent = Math.max(sent, sendAll(buffer));
    expect(buffer.needsFinalize).toBe(false);
    const commit = (position: number) => buffer.commit({ position, time: 0, index: 0, state: '' });
    // The checkpoints up to 32 come without more audio, one after the other.
    expect(buffer.acknowledge(end, 0, 32)).toBe(true);
    for (const position of [0, 16, 31]) expect([commit(position), buffer.needsFinalize]).toEqual([true, false]);
    // One open utterance is left.
    expect([commit(32), buffer.needsFinalize]).toEqual([true, true]);
    expect(buffer.acknowledge(end, 0, end + 1)).toBe(false);
  });

  it('remembers a bounded number of answers', () => {
    const buffer = create();
    expect(buffer.request('finalize', 1)).toBe('pending');
    expect(buffer.request('finalize', 1)).toBe('pending');
    expect(buffer.answer('finalize', 1)).toBe(true);
    expect(buffer.answer('finalize', 1)).toBe(false);
    expect(buffer.request('finalize', 1)).toBe('answered');
    expect(buffer.request('clear', 1)).toBe('pending');
    for (let id = 2; id < STREAM_ANSWERS_MAX + 2; id++) {
      buffer.request('finalize', id);
      buffer.answer('finalize', id);
    }
    expect(buffer.request('finalize', 1)).toBe('pending');
  });
});

describe('seconds of a stream', () => {
  it('count as processed when an agent received them', () => {
    const buffer = create();
    append(buffer, 80_000);
    const { clock } = buffer;
    expect([clock.received, clock.processed]).toEqual([10, 0]);
    buffer.next();
    buffer.acknowledge(16_000, 2);
    expect([clock.received, clock.processed]).toEqual([10, 2]);
    buffer.rewind();
    expect(clock.processed).toBe(2);
    clock.finish(10);
    expect(clock.processed).toBe(10);
  });

  it.each(['ogg-opus', 'webm', 'aac'] as const)('for %s they are what the agent measured', (encoding) => {
    const buffer = create({ encoding, rate: 48_000 });
    const { clock } = buffer;
    const send = (bytes: number, time: number) => {
      append(buffer, bytes);
      expect(clock.received).toBeLessThan(time);
      sendAll(buffer);
      expect(buffer.acknowledge(buffer.position, time)).toBe(true);
      expect([clock.end, clock.received]).toEqual([time, time]);
    };
    send(4_000, 2);
    send(1_000, 2.5);
    append(buffer, 7);
    expect(clock.received).toBe(2.5);
    clock.finish(5);
    expect(clock.received).toBe(5);
  });

  it('are counted by bytes where the format tells, whatever the agent reports', () => {
    const buffer = create();
    append(buffer, 800);
    buffer.clock.finish(99);
    expect(buffer.clock.received).toBe(0.1);
  });

  it('go on from a checkpoint', () => {
    const from = { position: 8_000, time: 1, index: 0, state: '' };
    const buffer = new ReplayBuffer({ format, options, from });
    append(buffer, 800);
    expect(buffer.clock.received).toBeCloseTo(1.1, 9);
  });
});

describe('C10 R1 audio that a full buffer does not take', () => {
  const most = STREAM_RING_ITEMS_MAX;

  function startFull() {
    const buffer = create();
    for (let taken = 0; taken < most; taken++) append(buffer, 1);
    expect(buffer.position).toBe(most);
    const empty = () => {
      sendAll(buffer);
      buffer.commit({ position: buffer.position, time: buffer.clock.end, index: 0, state: '' });
    };
    return { buffer, empty };
  }

  it('is refused without a position, and reported once', () => {
    const { buffer } = startFull();
    expect(append(buffer, 1)).toMatchObject(full);
    expect([buffer.position, buffer.takeOverflow()]).toEqual([most, undefined]);
  });

  it('with a position is reported once, and taken when it comes again', () => {
    const { buffer, empty } = startFull();
    expect(append(buffer, 1, most)).toMatchObject({ value: 'overflow' });
    expect(buffer.takeOverflow()).toEqual({ position: most, bytes: 1, seconds: 1 / 8_000 });
    expect(append(buffer, 1, most + 1)).toMatchObject({ value: 'done' });
    expect(buffer.takeOverflow()).toBeUndefined();
    empty();
    append(buffer, 1, most);
    expect(buffer.position).toBe(most + 1);
  });

  it('MUST 11: refuses the end until it came again', () => {
    const { buffer, empty } = startFull();
    expect(buffer.isWhole).toBe(true);
    append(buffer, 1, most);
    expect(buffer.isWhole).toBe(false);
    empty();
    append(buffer, 1, most);
    expect(buffer.isWhole).toBe(true);
  });

  it('changes nothing after the end', () => {
    const { buffer } = startFull();
    buffer.end();
    expect([append(buffer, 1).ok, append(buffer, 1, most).ok, buffer.takeOverflow()]).toEqual([true, true, undefined]);
  });

  it('does not replace the reason for which the edge ended the input', () => {
    const { buffer } = startFull();
    append(buffer, 1, most);
    buffer.end();
    expect(buffer.isWhole).toBe(true);
  });

  it('is what the memory budget does not allow', () => {
    const most = memoryFor(10);
    const mayGrow = (bytes: number): boolean => buffer.bufferedBytes + bytes <= most;
    const buffer: ReplayBuffer = new ReplayBuffer({ format, options, mayGrow });
    expect(append(buffer, 10).ok).toBe(true);
    expect(append(buffer, 1)).toMatchObject(full);
  });

  it('is waited for only while the agent has all that was taken', () => {
    const { buffer, empty } = startFull();
    append(buffer, 1, most);
    expect(buffer.isStarved).toBe(false);
    sendAll(buffer);
    expect(buffer.isStarved).toBe(false);
    buffer.acknowledge(most, buffer.clock.end);
    expect(buffer.isStarved).toBe(true);
    empty();
    append(buffer, 1, most);
    expect(buffer.isStarved).toBe(false);
  });
});
