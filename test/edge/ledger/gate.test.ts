import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { LEASE_MS } from '../../../edge/ledger/allowance.ts';
import { createEvent } from '../../../edge/ledger/create-event.ts';
import type { Gate } from '../../../edge/ledger/gate.ts';
import { AUDIT_EVENT_BYTES, OUTBOX_EVENTS_MAX, OUTBOX_ROW_EVENTS_MAX, Outbox } from '../../../edge/ledger/outbox.ts';
import { gateName } from '../../../edge/ledger/record.ts';
import { REQUESTS_PER_MINUTE } from '../../../edge/limits.ts';
import type { AuditEvent } from '../../../shared/audit/event.ts';
import { passTime, startDay } from '../../fake/network.ts';
import { record, settle, take } from '../gate-steps.ts';

const freshGate = () => env.GATE.getByName(`tenant-${crypto.randomUUID()}/eu`);
const attempt = (request: string): AuditEvent =>
  createEvent({ type: 'inference.attempt', tenant: 't', request, action: 'transcribe', class: 'default' }, Date.now());
const allowance = { requestsAtOnce: 2 };
const work = { tenant: 't', action: 'transcribe' };

describe('A1 C4 the gate takes the allowance and writes the attempt in one step', () => {
  it('both happen', async () => {
    const gate = freshGate();
    expect((await take(gate, { id: 'one', work, allowance }, 'strict', [attempt('one')])).ok).toBe(true);
    const { rows, epoch } = await gate.outbox(0, 10);
    expect(epoch).toMatch(/^[0-9a-f-]{36}$/);
    expect(rows).toMatchObject([{ pseq: 1, event: { type: 'inference.attempt', request: 'one' } }]);
  });

  it('neither happens when the allowance refuses', async () => {
    const gate = freshGate();
    for (const id of ['one', 'two', 'three']) await take(gate, { id, work, allowance }, 'strict', [attempt(id)]);
    const refused = await take(gate, { id: 'four', work, allowance }, 'strict', [attempt('four')]);
    expect(refused).toMatchObject({ ok: false, refusal: { reason: 'allowance_concurrent', params: { limit: 2 } } });
    expect((await gate.outbox(0, 10)).rows.map(({ pseq }) => pseq)).toEqual([1, 2]);
  });

  it('neither happens when the write fails, and the next one finds everything as before', async () => {
    const gate = freshGate();
    await take(gate, { id: 'one', work, allowance }, 'strict', [attempt('one')]);
    const broken = {
      get type() {
        throw new Error('disk');
      },
    } as unknown as AuditEvent;
    await runInDurableObject<Gate, void>(gate, (instance) => {
      const step = {
        kind: 'take',
        ask: { id: 'two', work, allowance },
        mode: 'strict',
        events: [attempt('two'), broken],
      } as const;
      expect(() => instance.apply([step])).toThrow('disk');
    });
    expect((await gate.outbox(0, 10)).rows).toHaveLength(1);
    expect((await take(gate, { id: 'three', work, allowance }, 'strict', [attempt('three')])).ok).toBe(true);
    expect((await gate.outbox(0, 10)).rows.map(({ pseq }) => pseq)).toEqual([1, 2]);
  });

  it('a retry after a lost answer takes one slot and one attempt', async () => {
    const gate = freshGate();
    const event = attempt('one');
    await take(gate, { id: 'one', work, allowance: { requestsAtOnce: 1 } }, 'strict', [event]);
    expect((await take(gate, { id: 'one', work, allowance: { requestsAtOnce: 1 } }, 'strict', [event])).ok).toBe(true);
    expect((await gate.outbox(0, 10)).rows).toHaveLength(1);
  });

  it('steps of several requests are answered one by one, in their order', async () => {
    const gate = freshGate();
    const step = (id: string) =>
      ({ kind: 'take', ask: { id, work, allowance }, mode: 'strict', events: [attempt(id)] }) as const;
    const done = { kind: 'settle', id: 'one', mode: 'strict', audioSeconds: 1, events: [attempt('end')] } as const;
    const answers = await gate.apply([step('one'), step('two'), step('three'), step('two'), done, step('four')]);
    expect(answers.map(({ ok }) => ok)).toEqual([true, true, false, true, true, true]);
    const { rows } = await gate.outbox(0, 10);
    expect(rows.map(({ event }) => (event as { request: string }).request)).toEqual(['one', 'two', 'end', 'four']);
  });

  it('settle gives the place back, once', async () => {
    const gate = freshGate();
    const one = { requestsAtOnce: 1, audioSecondsPerDay: 30 };
    await take(gate, { id: 'one', work, allowance: one }, 'buffered', []);
    await settle(gate, 'one', 20, []);
    await settle(gate, 'one', 20, []);
    expect((await take(gate, { id: 'two', work, allowance: one }, 'buffered', [])).ok).toBe(true);
  });

  it('stores a strict step with its answer, a buffered one soon after', async () => {
    const gate = freshGate();
    const onDisk = () =>
      runInDurableObject<Gate, number>(gate, (_, { storage }) =>
        Number(storage.sql.exec('SELECT max(pseq) AS n FROM ev').one().n),
      );
    await runInDurableObject<Gate, void>(gate, (instance, { storage }) => {
      instance.apply([
        { kind: 'take', ask: { id: 'one', work, allowance }, mode: 'buffered', events: [attempt('one')] },
      ]);
      expect(storage.sql.exec('SELECT max(pseq) AS n FROM ev').one().n).toBe(null);
      instance.apply([{ kind: 'take', ask: { id: 'two', work, allowance }, mode: 'strict', events: [attempt('two')] }]);
      expect(storage.sql.exec('SELECT max(pseq) AS n FROM ev').one().n).toBe(2);
    });
    await record(gate, [attempt('three')]);
    await expect.poll(onDisk).toBe(3);
    expect((await gate.outbox(0, 10)).rows.map(({ pseq }) => pseq)).toEqual([1, 2, 3]);
  });

  it('C9 a read of an unused gate stores nothing', async () => {
    const gate = freshGate();
    const tables = () =>
      runInDurableObject<Gate, unknown[]>(gate, (_, { storage }) =>
        storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf\\_%' ESCAPE '\\'").toArray(),
      );
    expect(await gate.outbox(0, 10)).toEqual({ epoch: '', rows: [], waiting: 0 });
    expect(await tables()).toEqual([]);
    await take(gate, { id: 'one', work, allowance }, 'strict', [attempt('one')]);
    expect((await tables()).length).toBeGreaterThan(0);
    expect((await gate.outbox(0, 10)).rows).toHaveLength(1);
    await evictDurableObject(gate);
    expect((await gate.outbox(0, 10)).rows).toHaveLength(1);
  });

  it('state survives an eviction', async () => {
    const gate = freshGate();
    await take(gate, { id: 'one', work, allowance: { requestsAtOnce: 1 } }, 'strict', [attempt('one')]);
    const { epoch } = await gate.outbox(0, 1);
    await evictDurableObject(gate);
    const refused = await take(gate, { id: 'two', work, allowance: { requestsAtOnce: 1 } }, 'buffered', [
      attempt('two'),
    ]);
    expect(refused).toMatchObject({ ok: false, refusal: { reason: 'allowance_concurrent' } });
    await record(gate, [attempt('three')]);
    const after = await gate.outbox(0, 10);
    expect(after.epoch).toBe(epoch);
    expect(after.rows.map(({ pseq }) => pseq)).toEqual([1, 2]);
  });
});

describe('C4 the allowance of one token at the gate', () => {
  const share = { id: 'grant', allowance: { requestsPerMinute: 2 }, until: Date.now() + 3_600_000 };
  const begin = (gate: ReturnType<typeof freshGate>, id: string, events = [attempt(id)]) =>
    take(gate, { id, work, allowance: {}, share }, 'strict', events);
  const refused = { ok: false, refusal: { reason: 'allowance_requests', params: { limit: 2 } } };

  it('keeps counts over an eviction, without unwritten ones', async () => {
    const gate = freshGate();
    expect((await begin(gate, 'one')).ok).toBe(true);
    await runInDurableObject<Gate, void>(gate, (instance) => {
      const broken = {
        get type() {
          throw new Error('disk');
        },
      } as unknown as AuditEvent;
      const ask = { id: 'lost', work, allowance: {}, share };
      expect(() => instance.apply([{ kind: 'take', ask, mode: 'strict', events: [broken] }])).toThrow('disk');
    });
    await evictDurableObject(gate);
    expect((await begin(gate, 'two')).ok).toBe(true);
    expect(await begin(gate, 'three')).toMatchObject(refused);
    expect((await gate.quota({}, share)).requests).toMatchObject({ limit: 2, remaining: 0 });
    // A refusal of the token takes nothing of the tenant.
    expect((await gate.quota({})).requests.remaining).toBe(REQUESTS_PER_MINUTE - 2);
  });

  it('refuses for the longer wait where tenant and token are used up', async () => {
    startDay();
    const gate = freshGate();
    const tenant = { requestsPerMinute: 1 };
    const token = { id: 'day', allowance: { audioSecondsPerDay: 1 }, until: Date.now() + 3_600_000 };
    const begin = (id: string) => take(gate, { id, work, allowance: tenant, share: token }, 'strict', [attempt(id)]);
    expect((await begin('one')).ok).toBe(true);
    await settle(gate, 'one', 1, [attempt('one')]);
    const refused = await begin('two');
    expect(refused).toMatchObject({ ok: false, refusal: { reason: 'allowance_seconds' } });
    expect(refused.ok ? 0 : refused.refusal.retryAfter).toBeGreaterThan(3_600);
  });
});

describe('A1 A2 an attempt of a dead isolate', () => {
  const lostOf = async (gate: ReturnType<typeof freshGate>) =>
    (await gate.outbox(0, 100)).rows
      .map(({ event }) => event as AuditEvent)
      .filter((event) => event.type === 'inference.unknown');
  const lost = (request: string) => ({ ...work, request });

  it.each(['strict', 'buffered'] as const)('has an end with the next call, once (%s)', async (mode) => {
    const gate = freshGate();
    await take(gate, { id: 'one', work, allowance }, mode, [attempt('one')]);
    passTime(LEASE_MS);
    await take(gate, { id: 'two', work, allowance: { requestsAtOnce: 1 } }, mode, [attempt('two')]);
    await record(gate, []);
    expect(await lostOf(gate)).toMatchObject([lost('one')]);
  });

  it('has an end without a call, once, also after the object was moved', async () => {
    const gate = freshGate();
    await take(gate, { id: 'one', work, allowance }, 'strict', [attempt('one')]);
    await take(gate, { id: 'two', work, allowance }, 'strict', [attempt('two')]);
    await settle(gate, 'two', 1, [attempt('two')]);
    await gate.outbox(0, 1);
    await evictDurableObject(gate);
    passTime(LEASE_MS);
    expect(await runDurableObjectAlarm(gate)).toBe(true);
    expect(await lostOf(gate)).toMatchObject([lost('one')]);
    expect(await runDurableObjectAlarm(gate)).toBe(false);
    expect(await lostOf(gate)).toHaveLength(1);
  });

  it('stays open while its isolate extends it; the alarm checks again', async () => {
    const gate = freshGate();
    await take(gate, { id: 'one', work, allowance }, 'strict', [attempt('one')]);
    passTime(LEASE_MS / 2);
    await gate.apply([{ kind: 'renew', id: 'one', events: [] }]);
    passTime(LEASE_MS / 2);
    expect(await runDurableObjectAlarm(gate)).toBe(true);
    expect(await lostOf(gate)).toEqual([]);
    passTime(LEASE_MS);
    expect(await runDurableObjectAlarm(gate)).toBe(true);
    expect(await lostOf(gate)).toMatchObject([lost('one')]);
  });

  it('has the reported end when that is in time', async () => {
    const gate = freshGate();
    await take(gate, { id: 'one', work, allowance }, 'strict', [attempt('one')]);
    await settle(gate, 'one', 1, []);
    passTime(LEASE_MS);
    await record(gate, []);
    expect(await lostOf(gate)).toEqual([]);
  });
});

describe('R14 records the subject as a commitment', () => {
  const withSubject = (subject: string): AuditEvent => ({ ...attempt('one'), subject }) as AuditEvent;
  const subjects = async (gate: ReturnType<typeof freshGate>) =>
    (await gate.outbox(0, 100)).rows.map(({ event }) => (event as { subject?: string }).subject);

  it('equal for a subject, also after the object moved; different for each tenant', async () => {
    const [gate, other] = [freshGate(), freshGate()];
    await record(gate, [withSubject('alice'), withSubject('bob')]);
    await record(other, [withSubject('alice')]);
    await gate.outbox(0, 1);
    await evictDurableObject(gate);
    await take(gate, { id: 'one', work, allowance }, 'strict', [withSubject('alice')]);
    const [first, second, third] = await subjects(gate);
    expect(first).toMatch(/^c1:[0-9a-f]{64}$/);
    expect(third).toBe(first);
    expect(second).not.toBe(first);
    expect(await subjects(other)).not.toContain(first);
  });

  it('a subject that looks like a commitment gets one all the same', async () => {
    const gate = freshGate();
    const subject = `c1:${'0'.repeat(64)}`;
    await record(gate, [withSubject(subject)]);
    expect(await subjects(gate)).not.toContain(subject);
  });
});

describe('C4 name of a gate', () => {
  it.each([
    [['eu', 'us'], 't/eu'],
    [['us', 'eu'], 't/eu'],
    [['us'], 't/us'],
    [['mars', 'us'], 't/us'],
    [['mars'], 't/eu'],
  ])('zones %j of a token lead to %s, whatever their order', (zones, name) => {
    expect(gateName({ tenant: 't', zones }, ['eu', 'us'])).toBe(name);
  });
});

describe('A1 the outbox', () => {
  const withOutbox = (bound: number, work: (outbox: Outbox, state: DurableObjectState) => void) =>
    runInDurableObject<Gate, void>(freshGate(), (_, state) => work(new Outbox(state.storage.sql, bound), state));

  it('drops the oldest at its bound and records a gap', async () => {
    await withOutbox(5, (outbox) => {
      for (let n = 1; n <= 7; n += 1) outbox.add([attempt(`r${n}`)], 1_000 + n);
      const { rows } = outbox.page(0, 100);
      expect(rows.length).toBeLessThanOrEqual(5);
      const gaps = rows.filter(({ event }) => (event as AuditEvent).type === 'gap');
      expect(gaps.length).toBeGreaterThan(0);
      expect(gaps[0]?.event).toMatchObject({ lost: 2, from: 1, to: 2 });
      // Numbers go on without a hole among what is left, and are never used twice.
      const numbers = rows.map(({ pseq }) => pseq);
      expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] as number) + at));
    });
  });

  it('a full one refuses strict tenants; buffered ones are served, with a gap event', async () => {
    const gate = freshGate();
    await record(gate, [attempt('first')]);
    // Reading writes what is in memory only.
    await gate.outbox(0, 1);
    await runInDurableObject<Gate, void>(gate, (_, { storage }) => {
      const last = OUTBOX_EVENTS_MAX;
      storage.sql.exec(
        'WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO ev SELECT i, ?, 0 FROM n',
        last,
        '{}',
      );
      storage.sql.exec('UPDATE meta SET next = ?', last + 1);
    });
    await evictDurableObject(gate);
    const strict = await take(gate, { id: 'one', work, allowance }, 'strict', [attempt('one')]);
    expect(strict).toMatchObject({ ok: false, refusal: { reason: 'audit_unavailable' } });
    expect((await take(gate, { id: 'two', work, allowance }, 'buffered', [attempt('two')])).ok).toBe(true);
    const { rows } = await gate.outbox(OUTBOX_EVENTS_MAX, 10);
    expect(rows.map(({ event }) => (event as AuditEvent).type)).toEqual(['gap', 'inference.attempt']);
    expect(rows[0]?.event).toMatchObject({ lost: OUTBOX_EVENTS_MAX / 100, from: 1 });
  });

  it('events of one call share a row, and are readable from any of them', async () => {
    await withOutbox(1_000, (outbox, { storage }) => {
      const row = OUTBOX_ROW_EVENTS_MAX;
      outbox.add([attempt('first')], 1);
      outbox.add(
        Array.from({ length: row + 2 }, (_, at) => attempt(`r${at}`)),
        2,
      );
      expect(storage.sql.exec('SELECT count(*) AS n FROM ev').one().n).toBe(3);
      const names = (after: number, limit: number) =>
        outbox.page(after, limit).rows.map(({ pseq, t, event }) => [pseq, t, (event as { request: string }).request]);
      expect(names(0, 3)).toEqual([
        [1, 1, 'first'],
        [2, 2, 'r0'],
        [3, 2, 'r1'],
      ]);
      expect(names(row, 10)).toEqual([
        [row + 1, 2, `r${row - 1}`],
        [row + 2, 2, `r${row}`],
        [row + 3, 2, `r${row + 1}`],
      ]);
      expect(outbox.page(row, 2).next).toBe(row + 2);
      const again = new Outbox(storage.sql, row + 3);
      expect([again.hasRoom(0), again.hasRoom(1)]).toEqual([true, false]);
      // Whole rows go, so more than what is needed.
      again.add([attempt('last')], 3);
      expect(again.page(0, 1).rows[0]).toMatchObject({ pseq: row + 2, event: { request: `r${row}` } });
      expect(again.page(0, 10).rows.at(-2)).toMatchObject({
        event: { type: 'gap', lost: row + 1, from: 1, to: row + 1 },
      });
    });
  });

  it('pages', async () => {
    await withOutbox(100, (outbox) => {
      outbox.add(['a', 'b', 'c'].map(attempt), 1);
      const first = outbox.page(0, 2);
      expect(first.rows.map(({ pseq }) => pseq)).toEqual([1, 2]);
      expect(first.next).toBe(2);
      const second = outbox.page(2, 2);
      expect(second.rows.map(({ pseq }) => pseq)).toEqual([3]);
      expect(second.next).toBeUndefined();
    });
  });

  it('an event over the size of a leaf is replaced by its digest', async () => {
    await withOutbox(100, (outbox) => {
      const huge = createEvent(
        { type: 'inference.denied', request: 'r', action: 'a', reason: 'x'.repeat(AUDIT_EVENT_BYTES) },
        1,
      );
      outbox.add([huge], 1);
      const [row] = outbox.page(0, 1).rows;
      expect(row?.event).toMatchObject({ id: huge.id, oversize: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) });
    });
  });
});
