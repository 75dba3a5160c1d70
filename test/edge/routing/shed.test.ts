import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shed } from '../../../edge/routing/shed.ts';
import { createRequestSlots, REQUESTS_IN_FLIGHT_MAX } from '../../../infra/pool/agent/request/request-slots.ts';
import { classes } from '../../../shared/tenant/claims.ts';
import { agent, anyFleet, anyRequest, now, request, snapshot } from './fleet.ts';

const busy = (name: string, heard = now) => agent(name, {}, { full: ['default', 'batch'] }, heard);

describe('C6 A21 shedding before the body is read', () => {
  it.each(['default', 'batch'] as const)('refuses %s when every candidate is full', (name) => {
    const refusal = shed(request({ class: name }), [snapshot([busy('a'), busy('b')])], now);
    expect(refusal).toMatchObject({ reason: 'pool_busy' });
  });

  it.each([
    ['class interactive', { class: 'interactive' }],
    ['class realtime', { class: 'realtime' }],
    ['a stream', { class: 'batch', realtime: true }],
  ] as const)('never refuses %s', (_, change) => {
    const everything = agent('a', {}, { full: [...classes] });
    expect(shed(request(change), [snapshot([everything])], now)).toBeUndefined();
  });

  it('admits with one free candidate or an old report', () => {
    expect(shed(request(), [snapshot([busy('a'), agent('b')])], now)).toBeUndefined();
    expect(shed(request(), [snapshot([busy('a'), busy('b', now - 2_001)])], now)).toBeUndefined();
  });

  it('leaves the refusal of a request without candidates to pick', () => {
    expect(shed(request(), [snapshot([])], now)).toBeUndefined();
    expect(shed(request({ zones: ['us'] }), [snapshot([busy('a')])], now)).toBeUndefined();
  });

  it('never refuses realtime speech in any fleet', () => {
    fc.assert(
      fc.property(anyRequest, anyFleet, (asked, fleet) => {
        expect(shed({ ...asked, class: 'realtime' }, fleet, now)).toBeUndefined();
      }),
      { numRuns: 100 },
    );
  });
});

describe('A2 slots of an agent', () => {
  it('report a class as full when no tenant gets one', () => {
    const slots = createRequestSlots(() => now);
    const taken = [];
    expect(slots.full()).toEqual([]);
    for (let at = 0; at < REQUESTS_IN_FLIGHT_MAX; at++) {
      const slot = slots.enter({ class: 'batch', tenant: `tenant-${at}`, deadline: now + 60_000 });
      if (!slot.ok) break;
      slot.value.start();
      taken.push(slot.value);
    }
    expect(slots.full()).toEqual(['batch']);
    taken[0]?.leave();
    expect(slots.full()).toEqual([]);
  });
});
