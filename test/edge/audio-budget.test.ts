import { describe, expect, it } from 'vitest';
import { AudioBudget } from '../../edge/stream/audio-budget.ts';
import { limits } from '../../shared/limits.ts';
import { Ring } from '../../shared/stream/ring.ts';

const bounds = { share: 10, tenant: 60, isolate: 100 };

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
    const { enter } = startBudget();
    const [first, second] = [enter('a'), enter('a')];
    expect([first.take(50), second.take(10), second.take(1)]).toEqual([true, true, false]);
    first.audio.memory = 20;
    expect(second.take(30)).toBe(true);
  });

  it('is bounded by isolate, over all tenants', () => {
    const { budget, enter } = startBudget();
    const [first, second, third] = [enter('a'), enter('b'), enter('c')];
    expect([first.take(60), second.take(35), third.take(11)]).toEqual([true, true, false]);
    expect(budget.bytes()).toBe(95);
  });

  it('leaves every session its share when tenant and isolate are full', () => {
    const { enter } = startBudget();
    for (const tenant of ['a', 'b']) enter(tenant).take(50);
    const late = enter('a');
    expect([late.take(6), late.take(4), late.take(1)]).toEqual([true, true, false]);
  });

  it('comes back when a session ends', () => {
    const { budget, enter } = startBudget();
    const [first, second] = [enter('a'), enter('a')];
    first.take(60);
    expect(second.take(20)).toBe(false);
    first.lease.end();
    expect(second.take(20)).toBe(true);
    expect([budget.bytes('a'), budget.bytes('b')]).toEqual([20, 0]);
  });

  it('fits its platform, and one session always fits its tenant', () => {
    const { heldBytesInFlight, streamIsolateBytes, streamTenantBytes, streamShareBytes, streamClientBytes } = limits;
    expect(streamIsolateBytes.value + heldBytesInFlight.value).toBeLessThan(0.8 * 128_000_000);
    expect(streamTenantBytes.value).toBeLessThan(streamIsolateBytes.value);
    expect(streamClientBytes.value).toBeLessThan(streamShareBytes.value);
    const tenMinutes = 600 * 24_000 * 2;
    for (const length of [960, 3_200, 4_800, 5_500, 8_192, 9_600, 65_472]) {
      const ring = new Ring(0);
      for (let at = 0; at < tenMinutes; at += length) expect(ring.push(new Uint8Array(length), 0.1)).toBe(true);
      expect(ring.memory).toBeLessThan(streamTenantBytes.value);
    }
  });
});
