import { describe, expect, it } from 'vitest';
import {
  checkLog,
  DOCTOR_FRESH_MS,
  DOCTOR_WAIT_MS,
  type LogObservation,
  WITNESS_LAG_MS,
} from '../../../infra/cli/audit/doctor.ts';
import type { AuditHealth } from '../../../shared/audit/health.ts';
import { INTAKE_LIST_MAX, LOG_CLOCK_MS } from '../../../shared/audit/limits.ts';

const NOW = 1_800_000_000_000;
const log = {
  origin: 'audit.example/eu/2026',
  size: 700,
  published: 700,
  witnessed: 700,
  last: NOW - 9_000,
  open: 3,
  late: 0,
};
const health: AuditHealth = {
  ...{
    zone: 'eu',
    at: NOW,
    log,
    intake: { waiting: 1, oldestMs: 300 },
    witnesses: true,
    locked: true,
    development: false,
  },
  outboxes: {
    gate: { waiting: 4, oldestMs: 800 },
    roster: { waiting: 0, oldestMs: 0 },
  },
};
const well: LogObservation = {
  zone: 'eu',
  signed: 700,
  pinned: true,
  sentAt: NOW - 20,
  answered: NOW + 20,
  health,
  witnessed: { size: 700, at: NOW - 2_000 },
};
/** Beyond the permitted age of a witnessed checkpoint. */
const LONG_AGO = NOW - WITNESS_LAG_MS - 1_000;

const wrongIn = (seen: Partial<LogObservation>, told: Partial<AuditHealth> = {}) =>
  checkLog({
    ...well,
    ...seen,
    ...(seen.health === undefined && 'health' in seen ? {} : { health: { ...health, ...told } }),
  })
    .filter(({ outcome }) => outcome === 'fail')
    .map(({ check }) => check);

describe('C9 auricle audit doctor', () => {
  it('finds nothing wrong with a log that is well', () => {
    const checks = checkLog(well);
    // That there is a policy says neither that it is locked nor for how long.
    expect(checks.filter(({ outcome }) => outcome !== 'ok')).toMatchObject([
      { check: 'write once', outcome: 'skip', detail: expect.stringContaining('is not visible') },
    ]);
    expect(checks.map(({ check }) => check)).toContain('outbox of the roster');
  });

  it.each<[string, string, Partial<LogObservation>, Partial<AuditHealth>]>([
    ['it cannot be read, or its signature is wrong', 'log reachable', { signed: undefined, problem: 'not signed' }, {}],
    ['nothing was written for minutes', 'checkpoint fresh', {}, { log: { ...log, last: NOW - DOCTOR_FRESH_MS - 1 } }],
    ['its last entry is from the future', 'checkpoint fresh', {}, { log: { ...log, last: NOW + LOG_CLOCK_MS + 1 } }],
    [
      'what is committed is not published',
      'published',
      {},
      { log: { ...log, size: 701, last: NOW - DOCTOR_WAIT_MS - 1 } },
    ],
    ['a key did not sign what is published', 'published', {}, { log: { ...log, unsigned: ['p256'] } }],
    ['its clock is another', 'clock', { sentAt: NOW - 1_520, answered: NOW - 1_480 }, {}],
    ['deliveries pile up', 'intake', {}, { intake: { waiting: INTAKE_LIST_MAX, oldestMs: 10 } }],
    ['a delivery is stuck', 'intake', {}, { intake: { waiting: 1, oldestMs: DOCTOR_WAIT_MS + 1 } }],
    ['an outbox is stuck', 'outbox of the gate', {}, { outboxes: { gate: { waiting: 9, oldestMs: 120_000 } } }],
    ['numbers of an outbox have holes', 'nothing missing', {}, { log: { ...log, late: 1 } }],
    ['a gap that no operator accepted', 'nothing missing', {}, { gaps: { open: 1, accepted: 2, behind: 0 } }],
    ['gaps are not searched for', 'nothing missing', {}, { gaps: { open: 0, accepted: 0, behind: 2_049 } }],
    ['its state is full', 'room', {}, { log: { ...log, full: true } }],
    ['storage of the functions is full', 'storage', {}, { fullStores: ['blobs', 'rows'] }],
    ['its witnesses have not seen it', 'witnessed', { witnessed: undefined }, {}],
    [
      'its witnesses saw it last long ago, however new its newest entry is',
      'witnessed',
      { witnessed: { size: 699, at: LONG_AGO } },
      { log: { ...log, last: NOW } },
    ],
    ['a witness refuses it', 'one history', {}, { refusing: ['w1'] }],
    ['a witness doubts it', 'one history', {}, { doubted: [{ at: 1, witness: 'w1', why: 'says that' }] }],
    ['a witness has seen another one', 'one history', {}, { diverged: { at: 1, witness: 'w1', why: 'shows more' } }],
    ['storage does not lock it', 'write once', {}, { locked: false }],
    ['storage does not say whether it does', 'write once', {}, { locked: undefined }],
  ])('finds that %s', (_what, check, seen, told) => {
    expect(wrongIn(seen, told)).toEqual([check]);
  });

  it('names the clock of the functions', () => {
    const ahead = checkLog({ ...well, sentAt: NOW - 600_020, answered: NOW - 599_980 });
    expect(ahead.find(({ check }) => check === 'clock')).toMatchObject({
      outcome: 'fail',
      detail: "the functions' clock is 600 s ahead, or this machine's is wrong",
    });
    const unhealthy = "503: The audit log cannot be read at the moment. Reason: the functions' clock is 600 s behind.";
    expect(checkLog({ ...well, health: undefined, unhealthy }).at(-1)).toMatchObject({
      outcome: 'fail',
      detail: unhealthy,
    });
  });

  it('shows accepted gaps beside a check that passes', () => {
    const told = { ...health, gaps: { open: 0, accepted: 2, behind: 3 } };
    const [missing] = checkLog({ ...well, health: told }).filter(({ check }) => check === 'nothing missing');
    expect(missing).toMatchObject({ outcome: 'ok', detail: '3 outboxes are open, accepted gaps: 2' });
  });

  it('says what it cannot tell, and believes what may be so for a moment', () => {
    expect(wrongIn({ health: undefined })).toEqual(['health']);
    // A slow answer says less about the clock, and witnesses are asked after publishing.
    expect(wrongIn({ sentAt: NOW - 3_000, answered: NOW + 20, witnessed: { size: 690, at: NOW - 30_000 } })).toEqual(
      [],
    );
    // An idle log needs no newer cosignature.
    expect(wrongIn({ witnessed: { size: 700, at: LONG_AGO } })).toEqual([]);
    expect(wrongIn({}, { log: { ...log, size: 702 } })).toEqual([]);
    // Clocks may differ slightly; the age of an entry from another century is unknown.
    expect(wrongIn({}, { log: { ...log, size: 702, last: NOW + LOG_CLOCK_MS } })).toEqual([]);
    const century = { ...log, size: 702, last: Date.UTC(2099) };
    expect(wrongIn({}, { log: century })).toEqual(['checkpoint fresh', 'published']);
    const local = checkLog({
      ...well,
      pinned: false,
      health: { ...health, locked: false, witnesses: false, development: true },
    });
    expect(local.filter(({ outcome }) => outcome === 'skip').map(({ check }) => check)).toEqual([
      'one history',
      'witnessed',
      'write once',
    ]);
    expect(local.find(({ check }) => check === 'signed by its key')?.detail).toContain('first contact');
  });
});
