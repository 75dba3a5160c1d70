import { describe, expect, it } from 'vitest';
import type { Runtime } from '../../../edge/clock.ts';
import { REQUESTS_CONCURRENT } from '../../../edge/limits.ts';
import { ClosingSockets, STREAM_CLOSE_TIMEOUT_MS } from '../../../edge/stream/closing-sockets.ts';
import { CLOSING_SOCKETS_MAX, sockets as ofIsolate, Sockets } from '../../../edge/stream/sockets.ts';
import type { Claims } from '../../../shared/tenant/claims.ts';

const requestsAtOnce = 2;
const claims = { tenant: 'acme', allowance: { requestsAtOnce } } as unknown as Claims;
const other = { ...claims, tenant: 'globex' };
const most = requestsAtOnce + CLOSING_SOCKETS_MAX;

function fill(sockets: Sockets, of: Claims | undefined): object[] {
  const closing = Array.from({ length: of ? most : REQUESTS_CONCURRENT + most - requestsAtOnce }, () => ({}));
  for (const socket of closing) {
    expect(sockets.checkClosing(of)).toBeUndefined();
    sockets.closing(of, socket);
  }
  return closing;
}

describe('C10 A21 sockets that hold no slot', () => {
  it('refuses the next unstarted one beyond the allowance of its tenant', () => {
    const sockets = new Sockets();
    const [first, second] = [{}, {}];
    expect([sockets.open(claims, first), sockets.open(claims, second)]).toEqual([undefined, undefined]);
    expect(sockets.open(claims, {})).toMatchObject({ reason: 'allowance_concurrent', params: { limit: 2 } });
    expect(sockets.open(other, {})).toBeUndefined();
    sockets.release(claims, first);
    expect(sockets.open(claims, {})).toBeUndefined();
  });

  it.each([
    ['a tenant', claims],
    ['callers without a token', undefined],
  ])('counts closing sockets of %s until their close event', (_, of) => {
    const sockets = new Sockets();
    const [first] = fill(sockets, of) as [object];
    expect(sockets.checkClosing(of)).toMatchObject({ reason: 'allowance_concurrent' });
    expect(sockets.checkClosing(other)).toBeUndefined();
    sockets.closed(of, first);
    expect(sockets.checkClosing(of)).toBeUndefined();
  });

  it('keeps nothing of a tenant without sockets', () => {
    const sockets = new Sockets();
    const socket = {};
    sockets.open(claims, socket);
    sockets.release(claims, socket);
    for (const closing of fill(sockets, other)) sockets.closed(other, closing);
    expect([sockets.checkClosing(claims), sockets.checkClosing(other), sockets.size]).toEqual([
      undefined,
      undefined,
      0,
    ]);
  });
});

describe('C10 A21 sockets without an answer to the close frame', () => {
  /** A clock that a test moves on tick by tick. */
  function start() {
    const state = { now: 0, busy: false, aborted: 0, timers: 0 };
    let ring: (() => void) | undefined;
    const after: Runtime['after'] = () => {
      state.timers += 1;
      const { promise, resolve } = Promise.withResolvers<never>();
      ring = resolve as unknown as () => void;
      return { rings: promise, cancel: () => {} };
    };
    const runtime = { now: () => state.now, random: () => 0, after };
    const abort = () => {
      state.aborted += 1;
    };
    const closing = new ClosingSockets({ runtime, busy: () => state.busy, abort });
    const pass = async (ms: number) => {
      state.now += ms;
      ring?.();
      await Promise.resolve();
      await Promise.resolve();
      return state.aborted;
    };
    return { state, closing, pass };
  }
  const limit = STREAM_CLOSE_TIMEOUT_MS;

  it('end with their object once the last of them is overdue', async () => {
    const { closing, pass } = start();
    closing.add({}, claims);
    expect(await pass(limit - 1)).toBe(0);
    closing.add({}, claims);
    expect(await pass(1)).toBe(0);
    expect(closing.overdue).toBe(1);
    expect(await pass(limit - 1)).toBe(1);
    expect(closing.overdue).toBe(0);
  });

  it('wait while another connection is in use', async () => {
    const { state, closing, pass } = start();
    state.busy = true;
    closing.add({}, claims);
    expect(await pass(limit)).toBe(0);
    state.busy = false;
    expect(await pass(0)).toBe(1);
  });

  it('count as long as a connection in use keeps them open', async () => {
    const { state, closing, pass } = start();
    state.busy = true;
    const mine = { ...claims, tenant: 'busy' };
    for (let count = 0; count < most; count++) closing.add({}, mine);
    for (let hours = 0; hours < 3; hours++) expect(await pass(3_600_000)).toBe(0);
    expect(closing.overdue).toBe(most);
    expect(ofIsolate.checkClosing(mine)).toMatchObject({ reason: 'allowance_concurrent' });
    state.busy = false;
    expect(await pass(0)).toBe(1);
    expect(ofIsolate.checkClosing(mine)).toBeUndefined();
  });

  it('are watched by one loop', async () => {
    const { state, closing, pass } = start();
    for (let socket = {}, count = 0; count < 3; socket = {}, count++) {
      closing.add(socket, claims);
      closing.delete(socket);
    }
    closing.add({}, claims);
    expect(state.timers).toBe(1);
    expect(await pass(limit)).toBe(1);
  });

  it('end nothing when the client answers', async () => {
    const { closing, pass } = start();
    const socket = {};
    closing.add(socket, claims);
    closing.delete(socket);
    expect(await pass(limit)).toBe(0);
  });
});
