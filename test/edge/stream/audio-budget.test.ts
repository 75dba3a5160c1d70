import { describe, expect, it } from 'vitest';
import { BUFFERED_BYTES_IN_FLIGHT } from '../../../edge/http/buffered-bytes.ts';
import { STREAM_CLIENT_BYTES } from '../../../edge/protocol/auricle-stream.ts';
import {
  AudioBudget,
  STREAM_ISOLATE_BYTES,
  STREAM_PACED_BYTES,
  STREAM_TENANT_BYTES,
} from '../../../edge/stream/audio-budget.ts';
import { AudioRing } from '../../../edge/stream/audio-ring.ts';
import { STREAM_MESSAGE_BYTES } from '../../../edge/stream/client-socket.ts';

const bounds = { reserved: 2, expected: 4, paced: 10, tenant: 60, isolate: 100 };

/** Sessions of a budget that buffer as much as they are told, and only what they may. */
function startBudget() {
  const budget = new AudioBudget(bounds);
  const enter = (tenant: string) => {
    const audio = { memory: 0 };
    const lease = budget.enter(tenant, audio);
    const take = (bytes: number) => {
      const may = lease.mayGrow(bytes);
      if (may) audio.memory += bytes;
      return may;
    };
    return { audio, lease, take };
  };
  return { budget, enter };
}

describe('R1 C10 audio that an isolate buffers', () => {
  it('is bounded by tenant, over all its sessions', () => {
    const { budget, enter } = startBudget();
    const [first, second] = [enter('a'), enter('a')];
    expect([first.take(48), second.take(10), second.take(1)]).toEqual([true, true, false]);
    expect(second.take(2)).toBe(false);
    first.audio.memory = 20;
    expect(second.take(20)).toBe(true);
    expect([budget.bytes('a'), budget.mayEnter('a'), budget.mayEnter('b')]).toEqual([50, false, true]);
  });

  it('is bounded by tenant at the pace of speech, leaving memory to others', () => {
    const { budget, enter } = startBudget();
    const victim = enter('victim');
    for (let session = 0; session < 10; session++) {
      const flood = enter('flood');
      while (flood.audio.memory < bounds.paced && flood.take(1));
    }
    expect(budget.bytes('flood')).toBeLessThanOrEqual(bounds.tenant + 10 * bounds.reserved);
    expect([victim.take(bounds.paced), budget.mayEnter('other')]).toEqual([true, true]);
  });

  it('is bounded by isolate, over all tenants', () => {
    const { budget, enter } = startBudget();
    const [first, second, third] = [enter('a'), enter('b'), enter('c')];
    expect([first.take(50), second.take(39), second.take(38)]).toEqual([true, false, true]);
    expect([third.take(11), third.take(10), third.take(1)]).toEqual([false, true, false]);
    expect(budget.bytes()).toBe(98);
  });

  it('leaves room for sessions at the pace of speech, and their reserved part always', () => {
    const { budget, enter } = startBudget();
    const [first, second, late] = [enter('a'), enter('b'), enter('b')];
    for (const bulk of [first, second]) while (bulk.take(1));
    expect(budget.bytes()).toBe(90);
    expect([late.take(10), late.take(1), first.take(1), second.take(1)]).toEqual([true, false, false, false]);
    late.audio.memory = 0;
    const fill = enter('c');
    expect([fill.take(10), fill.take(1), late.take(2), late.take(1)]).toEqual([true, false, true, false]);
    expect(budget.bytes()).toBe(100);
  });

  it('never exceeds the isolate, however many sessions fill what they may', () => {
    const { budget, enter } = startBudget();
    const sessions: ReturnType<typeof enter>[] = [];
    for (let tenant = 0; tenant < 100; tenant++) {
      while (budget.mayEnter(`t${tenant}`)) sessions.push(enter(`t${tenant}`));
    }
    expect(sessions).toHaveLength(bounds.isolate / bounds.expected);
    for (const { take } of sessions) while (take(1));
    expect(budget.bytes()).toBe(bounds.isolate);
    for (const { audio } of sessions) expect(audio.memory).toBeGreaterThanOrEqual(bounds.reserved);
  });

  it('admits as many sessions as may each take what is expected of one', () => {
    const { budget, enter } = startBudget();
    const sessions: ReturnType<typeof enter>[] = [];
    while (budget.mayEnter('a')) sessions.push(enter('a'));
    expect([sessions.length, budget.mayEnter('b')]).toEqual([bounds.tenant / bounds.expected, true]);
    for (const { take } of sessions) expect(take(bounds.expected)).toBe(true);
  });

  it('counts the copies of a long message before it is read', () => {
    const { budget, enter } = startBudget();
    enter('a').take(40);
    const may = [budget.mayRead(30, 'binary'), budget.mayRead(20, 'text'), budget.mayRead(31, 'binary')];
    expect([...may, budget.mayRead(21, 'text')]).toEqual([true, true, false, false]);
    enter('b').take(48);
    expect([budget.mayRead(bounds.reserved, 'text'), budget.mayRead(7, 'binary')]).toEqual([true, false]);
  });

  it('comes back when a session ends', () => {
    const { budget, enter } = startBudget();
    const [first, second] = [enter('a'), enter('a')];
    first.take(48);
    expect(second.take(20)).toBe(false);
    first.lease.end();
    expect(second.take(20)).toBe(true);
    expect([budget.bytes('a'), budget.bytes('b')]).toEqual([20, 0]);
  });

  it('fits its platform, and one session always fits its tenant', () => {
    expect(STREAM_ISOLATE_BYTES + BUFFERED_BYTES_IN_FLIGHT).toBeLessThan(0.8 * 128_000_000);
    expect(STREAM_TENANT_BYTES).toBeLessThan(STREAM_ISOLATE_BYTES);
    expect(STREAM_CLIENT_BYTES).toBeLessThan(STREAM_PACED_BYTES);
    expect(3 * STREAM_MESSAGE_BYTES).toBeLessThan(STREAM_ISOLATE_BYTES);
    const tenMinutes = 600 * 24_000 * 2;
    for (const length of [960, 3_200, 4_800, 5_500, 8_192, 9_600, 65_472]) {
      const ring = new AudioRing(0);
      for (let at = 0; at < tenMinutes; at += length) expect(ring.push(new Uint8Array(length), 0.1)).toBe(true);
      expect(ring.memory).toBeLessThan(STREAM_TENANT_BYTES - STREAM_PACED_BYTES);
    }
  });
});
