// Deadlines of the edge's calls and storage that does not answer, without a host or storage.
import type { HttpResponseInit } from '@azure/functions';
import { describe, expect, it } from 'vitest';
import { deadlineIn, dropOverdue, refuseOverdue, serveInScope } from '../../functions/caller/request-scope.ts';
import { callStorage } from '../../functions/store/storage-call.ts';
import { publicText } from '../../shared/refusal.ts';

const NOW = 1_700_000_000_000;
const done: HttpResponseInit = { status: 201 };
const unreachable = Object.assign(new Error('connect ECONNREFUSED'), { name: 'RestError' });
const read = () => callStorage('read', async () => 'row');
const write = () => callStorage('write', async () => 'written');
const fail = (kind: 'read' | 'write') => callStorage(kind, () => Promise.reject(unreachable));

/** Serves with a deadline of `NOW` and a clock that `work` moves. */
async function serve(work: (clock: { now: number }) => Promise<unknown>, at = NOW - 1) {
  const clock = { now: at };
  const bounds = { deadline: NOW, now: () => clock.now };
  const { status, jsonBody } = await serveInScope(bounds, async () => {
    await work(clock);
    return done;
  });
  return [status, jsonBody?.error?.reason];
}

describe('T4 C9 a deadline', () => {
  it('names how long ago it passed, so that a skewed clock shows', () => {
    expect(refuseOverdue(NOW, NOW)).toBeUndefined();
    expect(refuseOverdue(undefined, NOW)).toBeUndefined();
    const refusal = refuseOverdue(NOW, NOW + 592_340);
    expect(refusal?.params).toEqual({ ago: 592.3 });
    expect(refusal && publicText(refusal)).toMatch(/Nothing was done.* 592.3 s earlier, by the clock of the functions/);
    expect([deadlineIn('1700000000000'), deadlineIn(null), deadlineIn('soon')]).toEqual([NOW, undefined, undefined]);
  });

  it('drops a call that is received after it', async () => {
    const begun: string[] = [];
    const work = async () => void begun.push('work');
    expect(await serve(work, NOW + 1)).toEqual([504, 'deadline_passed']);
    expect(begun).toEqual([]);
  });

  it('drops a call before its first write, and never after it', async () => {
    let written = 0;
    const writeAt = async (clock: { now: number }, now: number) => {
      clock.now = now;
      await write();
      written += 1;
    };
    expect(await serve((clock) => read().then(() => writeAt(clock, NOW + 60_000)))).toEqual([504, 'deadline_passed']);
    expect(written).toBe(0);
    const late = async (clock: { now: number }) => {
      await writeAt(clock, NOW);
      await writeAt(clock, NOW + 60_000);
    };
    expect(await serve(late)).toEqual([201, undefined]);
    expect(written).toBe(2);
  });

  it('drops a call that has written nothing its caller sees', async () => {
    const work = async (clock: { now: number }) => {
      await write();
      clock.now = NOW + 1;
      dropOverdue();
    };
    expect(await serve(work)).toEqual([504, 'deadline_passed']);
  });
});

describe('C9 T4 storage that does not answer', () => {
  it('is a refusal that says whether something may have been done', async () => {
    expect(await serve(() => fail('read'))).toEqual([503, 'storage_unavailable']);
    expect(await serve(() => fail('write'))).toEqual([503, 'uploads_unavailable']);
    expect(await serve(() => write().then(() => fail('read')))).toEqual([503, 'uploads_unavailable']);
  });

  it('is distinct from answers of storage and from bugs', async () => {
    const conflict = Object.assign(new Error('conflict'), { name: 'RestError', statusCode: 409 });
    await expect(serve(() => callStorage('write', () => Promise.reject(conflict)))).rejects.toBe(conflict);
    // Timers and events wait as long as the client of storage does.
    await expect(fail('read')).rejects.toBe(unreachable);
  });
});
