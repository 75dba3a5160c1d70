import { describe, expect, it } from 'vitest';
import { RULES, reportPolicy, UNREPORTED } from '../../../functions/audit/report/report-policy.ts';
import { AUDIT_READS_PER_TENANT_MAX, Reads } from '../../../functions/audit/report/report-reads.ts';
import { readSettings, settingNames } from '../../../functions/settings.ts';
import { isPlain } from '../../../shared/audit/plain-members.ts';
import { MemoryStore } from '../../fake/log-store.ts';
import { createFakeReporter } from '../../fake/reporter.ts';

const tail = { zone: 'eu', tenant: 'ops', action: 'entries' };

describe('C9 reads of the record are on record', () => {
  it('the first before it is answered, those of the same minute as one', async () => {
    const audit = createFakeReporter();
    let now = 1_000;
    const reads = new Reads(audit, () => now);
    expect((await reads.note(tail)).ok).toBe(true);
    expect(audit.reports).toMatchObject([{ zone: 'eu', draft: { type: 'access.audit', tenant: 'ops', count: 1 } }]);
    for (let n = 0; n < 500; n += 1) await reads.note(tail);
    await reads.note({ ...tail, tenant: 'auditor', action: 'checkpoint' });
    expect(audit.reports).toHaveLength(2);
    now = 61_000;
    await reads.flush();
    expect(audit.reports.slice(2).map(({ draft }) => draft)).toEqual([
      { type: 'access.audit', ...tail, count: 500, since: 1_000 },
    ]);
    await reads.note(tail);
    expect(audit.reports).toHaveLength(4);
  });

  it('each reader is hidden in the leaf and counted separately', async () => {
    const audit = createFakeReporter();
    const reads = new Reads(audit, () => 5);
    const [officer, clerk] = [`c1:${'a'.repeat(64)}`, `c1:${'b'.repeat(64)}`];
    for (const subject of [officer, officer, clerk]) await reads.note({ ...tail, subject });
    await reads.flush();
    const told = audit.reports.map(({ draft }) => draft);
    expect(told.map((draft) => 'subject' in draft && draft.subject)).toEqual([officer, clerk, officer]);
    expect(isPlain('access.audit', 'subject')).toBe(false);
  });

  it('past a bound, one tenant’s many readers are reported as one', async () => {
    const audit = createFakeReporter();
    const reads = new Reads(audit, () => 5);
    const most = AUDIT_READS_PER_TENANT_MAX;
    const name = (at: number) => `c1:${String(at).padStart(64, '0')}`;
    const readers = Array.from({ length: most + 60 }, (_, at) => ({ ...tail, subject: name(at) }));
    // First one by one, then concurrently: no answer precedes its report.
    for (const reader of readers.slice(0, most + 20)) expect((await reads.note(reader)).ok).toBe(true);
    const [first, ...more] = audit.reports.map(({ draft }) => draft).slice(most - 1);
    expect(first).toMatchObject({ action: 'entries', subject: name(most - 1), count: 1 });
    expect(more).toEqual([{ type: 'access.audit', ...tail, action: 'others', count: 1, since: 5 }]);
    await Promise.all(readers.slice(most + 20).map((reader) => reads.note(reader)));
    await reads.note({ ...tail, tenant: 'auditor', subject: name(1) });
    expect(audit.reports).toHaveLength(most + 2);
    await reads.flush();
    expect(audit.reports.slice(most + 2).map(({ draft }) => draft)).toEqual([
      { type: 'access.audit', ...tail, action: 'others', count: 59, since: 5 },
    ]);
    await reads.note({ ...tail, subject: name(most + 1) });
    expect(audit.reports.at(-1)?.draft).toMatchObject({ subject: name(most + 1) });
  });

  it('a reader during the first report waits for it, and is counted', async () => {
    const audit = createFakeReporter();
    const reads = new Reads(audit, () => 5);
    await Promise.all(Array.from({ length: 9 }, () => reads.note(tail)));
    await reads.flush();
    expect(audit.reports.map(({ draft }) => 'count' in draft && draft.count)).toEqual([1, 8]);
  });

  it('an unrecorded read is refused; counts are reported once possible', async () => {
    const audit = createFakeReporter();
    const reads = new Reads(audit, () => 5);
    audit.refuses = true;
    expect(await reads.note(tail)).toMatchObject({ ok: false, refusal: { reason: 'audit_unavailable' } });
    audit.refuses = false;
    await reads.note(tail);
    await reads.note(tail);
    audit.refuses = true;
    await reads.flush();
    audit.refuses = false;
    await reads.note(tail);
    await reads.flush();
    expect(audit.reports.map(({ draft }) => 'count' in draft && draft.count)).toEqual([1, 2]);
  });
});

describe('C9 C12 rules that change are on record', () => {
  const zones = { STORAGE_CONNECTION: 'x', SQS_REGION: 'r', MODE: 'development' };
  const settings = readSettings(zones);

  it('every setting is a rule or an exempted name', () => {
    const sides = [...RULES.filter((rule) => rule !== 'AUDIT_KEYS'), ...UNREPORTED];
    expect([...sides].sort()).toEqual([...settingNames].sort());
    for (const name of ['MODEL_SIGNERS', 'MIRROR_SHARE', 'AUDIT_KEY_YEARS', 'EDGE_URL']) expect(RULES).toContain(name);
    // A new one that holds a secret is to be named among those.
    for (const name of RULES) expect(name).not.toMatch(/(^|_)(SECRET|TOKEN|PASSWORD|CONNECTION|SERVICE_KEY|P256_KEY)$/);
  });

  it('each once, with digests of before and after, repeated until the log takes it', async () => {
    const [audit, store] = [createFakeReporter(), new MemoryStore()];
    audit.refuses = true;
    expect(await reportPolicy(store, 'eu', settings, audit)).toBe(false);
    audit.refuses = false;
    expect(await reportPolicy(store, 'eu', settings, audit)).toBe(true);
    const first = audit.reports.length;
    expect(audit.reports.map(({ draft }) => draft)).toContainEqual(
      expect.objectContaining({
        type: 'policy.change',
        policy: 'MODE',
        after: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      }),
    );
    await reportPolicy(store, 'eu', settings, audit);
    expect(audit.reports).toHaveLength(first);
    await reportPolicy(store, 'eu', { ...settings, MODE: 'production' }, audit);
    const before = audit.reports.find(({ draft }) => draft.type === 'policy.change' && draft.policy === 'MODE')?.draft;
    expect(audit.reports.slice(first).map(({ draft }) => draft)).toMatchObject([
      { policy: 'MODE', before: before?.type === 'policy.change' ? before.after : '', after: expect.any(String) },
    ]);
  });
});
