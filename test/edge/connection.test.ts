import { describe, expect, it } from 'vitest';
import { Connection } from '../../edge/stream/connection.ts';
import type { ClientStep, LiveDialect, SessionEvent } from '../../edge/stream/dialect.ts';
import type { Handover } from '../../edge/stream/handover.ts';
import { limits } from '../../shared/limits.ts';

/** A client that never reads, with a dialect that says so many bytes of each event. */
function connect(bytes: number, acknowledges = false) {
  let sent = 0;
  const steps: ClientStep[] = [];
  const socket = {
    send: ({ length }: string) => {
      sent += length;
    },
    addEventListener() {},
    accept() {},
    close() {},
  };
  const dialect = {
    acknowledges,
    open: () => [],
    hear: () => [],
    say: () => ['x'.repeat(bytes)],
    close: () => ({ frames: [], code: 1000, reason: '' }),
  };
  const owner = { step: (_: unknown, step: ClientStep) => void steps.push(step), dropped() {}, broke() {} };
  const handover = { claims: {} } as unknown as Handover;
  const made = new Connection(socket as never, dialect as unknown as LiveDialect, handover, owner, () => 0);
  return { connection: made, sent: () => sent, steps };
}

const word = (type: 'interim' | 'segment', at: number) => ({ type, index: 0, start: at, end: at + 1 }) as SessionEvent;
const burst = limits.streamUnreadBytes.value;

describe('§3-18 what a client that does not say what it reads may leave unread', () => {
  it('interims stop at so many bytes for each second of sound, and what stays is told', () => {
    const { connection, sent, steps } = connect(20_000);
    const seconds = 400;
    for (let at = 0; at < seconds; at++) {
      for (let turn = 0; turn < 4; turn++) connection.say(word('interim', at));
    }
    const most = burst + seconds * limits.streamTellBytes.value;
    expect(sent()).toBeGreaterThan(most - 100_000);
    expect(sent()).toBeLessThanOrEqual(most + 20_000);
    const before = sent();
    connection.say(word('segment', seconds));
    expect(sent()).toBe(before + 20_000);
    expect(steps).toEqual([]);
  });

  it('speech never gets there: a hundred bytes for each of five words a second, three times over', () => {
    const { connection, sent } = connect(1_500);
    for (let at = 0; at < 3_600; at++) for (let turn = 0; turn < 3; turn++) connection.say(word('interim', at));
    expect(sent()).toBe(3_600 * 3 * 1_500);
  });

  it('with twice as much of what has to be told it is sent away', () => {
    const { connection, sent, steps } = connect(20_000);
    for (let turn = 0; steps.length === 0 && turn < 1_000; turn++) connection.say(word('segment', 0));
    expect(steps).toMatchObject([{ type: 'close', refusal: { reason: 'reader_slow' } }]);
    expect(sent()).toBeLessThanOrEqual(2 * (burst + limits.streamTellBytes.value) + 20_000);
  });
});
