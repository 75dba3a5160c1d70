import { describe, expect, it, vi } from 'vitest';
import { FUNCTIONS_CALL_MS } from '../../../edge/functions/call-functions.ts';
import type { LogContext } from '../../../functions/audit/context/log-context.ts';
import { openLogKeys } from '../../../functions/audit/log/log-keys.ts';
import { REPORT_TIMEOUT_MS } from '../../../functions/audit/report/report.ts';
import { reportPolicy, rulesOf } from '../../../functions/audit/report/report-policy.ts';
import { openReports } from '../../../functions/audit/report/reports.ts';
import { readSettings } from '../../../functions/settings.ts';
import { MemoryStore } from '../../fake/log-store.ts';
import { createFakeReporter } from '../../fake/reporter.ts';

const settings = readSettings({ STORAGE_CONNECTION: 'x', SQS_REGION: 'r', MODE: 'development' });
const keysOf = async (seed: number) => {
  const keys = await openLogKeys({ AUDIT_KEY: Buffer.alloc(32, seed).toString('base64') });
  if (!keys) throw new Error('no keys');
  return keys;
};

it('A21 a report is refused before the edge stops waiting for the answer', () => {
  expect(REPORT_TIMEOUT_MS).toBeLessThan(FUNCTIONS_CALL_MS);
});

describe('C9 C12 rules of the log itself are on record', () => {
  it('witnesses and the public halves of its keys, when they change', async () => {
    const [audit, store] = [createFakeReporter(), new MemoryStore()];
    const [one, other] = [await keysOf(1), await keysOf(2)];
    const tell = (rules: ReturnType<typeof rulesOf>) => reportPolicy(store, 'eu', rules, audit);
    await tell(rulesOf(settings, one.policy));
    const first = audit.reports.length;
    await tell(rulesOf(settings, one.policy));
    expect(audit.reports).toHaveLength(first);
    await tell(rulesOf(settings, other.policy));
    await tell(rulesOf({ ...settings, AUDIT_WITNESSES: 'quorum none\n' }, other.policy));
    expect(audit.reports.slice(first).map(({ draft }) => 'policy' in draft && draft.policy)).toEqual([
      'AUDIT_KEYS',
      'AUDIT_WITNESSES',
    ]);
  });

  it('a start that cannot report is repeated until the log takes it', async () => {
    vi.useFakeTimers();
    try {
      const store = new MemoryStore();
      const keys = await keysOf(1);
      let away = true;
      const create: MemoryStore['create'] = async (area, name, bytes) => {
        if (away) throw new Error('storage is away');
        return MemoryStore.prototype.create.call(store, area, name, bytes);
      };
      const seen = { read: async () => undefined, replace: async () => false, create };
      const desk = { ...keys, store: seen, zones: ['eu', 'us'], now: () => 1, hide: () => async () => 'x' };
      const reports = openReports(desk as unknown as LogContext, settings);
      await reports.start();
      expect(store.area('intake').size).toBe(0);
      away = false;
      await vi.advanceTimersByTimeAsync(REPORT_TIMEOUT_MS);
      const zones = [...store.area('intake').keys()].map((name) => name.split('/')[0]);
      expect(new Set(zones)).toEqual(new Set(['eu', 'us']));
      const told = zones.length;
      // The first setting opens the epoch of its zone; the others share a write.
      expect(told).toBe(4);
      await vi.advanceTimersByTimeAsync(3 * REPORT_TIMEOUT_MS);
      expect(store.area('intake').size).toBe(told);
      await reports.stop();
    } finally {
      vi.useRealTimers();
    }
  });
});
