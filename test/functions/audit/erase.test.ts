import { describe, expect, it } from 'vitest';
import {
  ERASURES_PER_TENANT_MAX,
  eraseSubject,
  listErasures,
  settleErasures,
  turnOf,
} from '../../../functions/audit/erase/erase.ts';
import { erasureName } from '../../../functions/audit/erase/erase-state.ts';
import { releaseHold, setHold } from '../../../functions/audit/erase/hold.ts';
import { readBox } from '../../../functions/audit/sidecar/hide.ts';
import { SidecarReader } from '../../../functions/audit/sidecar/sidecar.ts';
import { decrypt, deriveKey, importKey } from '../../../functions/audit/sidecar/sidecar-box.ts';
import { describeBox } from '../../../functions/audit/sidecar/sidecar-keys.ts';
import { readDisclosure } from '../../../shared/audit/commitment.ts';
import { proveInclusion, verifyInclusion } from '../../../shared/audit/proof.ts';
import { hashLeaf, rootOf } from '../../../shared/audit/tree.ts';
import { fromBase64 } from '../../../shared/base64.ts';
import { faults, faultyStore } from '../../fake/faulty-log-store.ts';
import { deskOf, toldOf } from './erase-world.ts';
import { HiddenLog, WRAPPING, ZONE } from './hidden-log.ts';

const ann = { subject: 'c1:ann', audioSeconds: 1.875 };
const ben = { subject: 'c1:ben', audioSeconds: 2 };
const ask = { tenant: 'dev', subject: 'c1:ann', basis: 'gdpr-17' };
const DAY = 86_400_000;

async function twoSubjects(): Promise<HiddenLog> {
  const log = new HiddenLog();
  await log.write(log.event(ann), log.event(ben));
  await log.write(log.event(ann), log.event({ ...ann, tenant: 'other' }));
  return log;
}

const shown = async (log: HiddenLog) => {
  const { entries, leaves } = log.read();
  const hidden = await new SidecarReader(log.place(), log.newKeys()).read(0, entries);
  return leaves.map((leaf, at) => (leaf.type === 'inference.complete' ? hidden[at] : undefined)).slice(1, 5);
};

/** Tries everything that is possible with the setting and all of storage. */
async function attack(log: HiddenLog, box: string): Promise<boolean> {
  const blobs = [...log.store.areas].flatMap(([area, names]) =>
    [...names].map(([name, { bytes }]) => ({ area, name, bytes })),
  );
  const tryAll = async (keys: CryptoKey[], bytes: Uint8Array, abouts: string[]) => {
    for (const key of keys)
      for (const about of abouts) {
        const opened = await decrypt(key, bytes, about).catch(() => undefined);
        if (opened) return opened;
      }
    return undefined;
  };
  const wrapping = await importKey(fromBase64(WRAPPING) as Uint8Array);
  const secrets: Uint8Array[] = [];
  const outer: CryptoKey[] = [];
  for (const { name, bytes } of blobs) {
    const secret = await tryAll([wrapping], bytes, [name]);
    if (secret) outer.push(await importKey(secret), await deriveKey([secret], 'auricle audit secrets 1'));
    if (secret) secrets.push(secret);
  }
  for (const { name, bytes } of blobs) {
    const opened = await tryAll(outer, bytes, [name]);
    for (const [text] of String(opened && new TextDecoder().decode(opened)).matchAll(/[\w+/]{43}=/g)) {
      secrets.push(fromBase64(text) as Uint8Array);
    }
  }
  const about = readBox(box);
  if (!about) throw new Error('not a box');
  const keys = [...outer];
  for (const one of secrets) {
    keys.push(await importKey(one), await deriveKey([one], describeBox(ZONE, 'dev', about)));
    for (const other of secrets) keys.push(await deriveKey([one, other], describeBox(ZONE, 'dev', about)));
  }
  return (await tryAll(keys, fromBase64(about.box) as Uint8Array, [describeBox(ZONE, 'dev', about)])) !== undefined;
}

describe('C12 C9 erasing a subject', () => {
  it('destroys the keys of its own records only', async () => {
    const log = await twoSubjects();
    const before = await shown(log);
    const done = await eraseSubject(deskOf(log), { ...ask, by: `c1:${'0f'.repeat(32)}`, request: 'r9' });
    expect(done).toMatchObject({ ok: true, value: { outcome: 'done', count: 2 } });
    expect(await shown(log)).toEqual(['erased', before[1], 'erased', before[3]]);
    const [told, ...more] = await toldOf(log, 'erasure.exec');
    expect(more).toEqual([]);
    expect(told).toMatchObject({ outcome: 'done', basis: 'gdpr-17', count: 2, tn: 'dev', req: 'r9' });
    expect(told?.erased).toBe(done.ok && done.value.erased[0]);
    // There is no more to do, and the log has that, too.
    expect(await eraseSubject(deskOf(log), ask)).toMatchObject({ value: { outcome: 'nothing' } });
    expect(await toldOf(log, 'erasure.exec')).toMatchObject([{ outcome: 'done' }, { outcome: 'nothing' }]);
  });

  it('an officer’s own erasure keeps their reasons for holds and erasures (GDPR 17(3)(b), (e))', async () => {
    const log = new HiddenLog();
    const officer = `c1:${'0f'.repeat(32)}`;
    const id = crypto.randomUUID();
    await log.write(log.event({ subject: officer, audioSeconds: 3 }));
    await setHold(deskOf(log), { id, tenant: 'dev', subject: 'c1:ben', reason: 'case 7', by: officer });
    await log.write(
      log.event({
        type: 'export.create',
        export: id,
        format: 'csv',
        redaction: 'none',
        purpose: 'case 9',
        subject: officer,
      }),
    );
    expect(await eraseSubject(deskOf(log), { ...ask, subject: officer })).toMatchObject({ value: { outcome: 'done' } });
    await log.commit();
    const { entries, leaves } = log.read();
    const hidden = await new SidecarReader(log.place(), log.newKeys()).read(0, entries);
    const seenIn = (type: string, name: string) => {
      const found = hidden[leaves.findIndex((leaf) => leaf.type === type)];
      return typeof found === 'object' ? readDisclosure(found[name] ?? '')?.value : found;
    };
    expect(seenIn('inference.complete', 'subject')).toBe('erased');
    expect([seenIn('hold.set', 'reason'), seenIn('hold.set', 'subject')]).toEqual(['case 7', officer]);
    expect([seenIn('export.create', 'purpose'), seenIn('export.create', 'subject')]).toEqual(['case 9', officer]);
  });

  it('leaves no bytes from which any key recovers the value', async () => {
    const log = await twoSubjects();
    const boxes = await new SidecarReader(log.place(), log.keys).boxes(0, 5);
    const [, first = '', second = '', third = ''] = boxes;
    expect(await attack(log, first)).toBe(true);
    await eraseSubject(deskOf(log), ask);
    await log.commit();
    expect(await attack(log, first)).toBe(false);
    expect(await attack(log, third)).toBe(false);
    expect(await attack(log, second)).toBe(true);
    const all = [...log.store.areas.values()].flatMap((names) => [...names]);
    for (const [name, { bytes }] of all) expect(name + new TextDecoder().decode(bytes)).not.toContain('c1:ann');
  });

  it('changes no leaf: old signatures hold and the erased record stays in the tree', async () => {
    const log = await twoSubjects();
    const before = log.read();
    const hashes = before.entries.map(hashLeaf);
    await eraseSubject(deskOf(log), ask);
    await log.commit();
    const after = log.read();
    expect(after.entries.slice(0, before.entries.length)).toEqual(before.entries);
    const all = after.entries.map(hashLeaf);
    const read = async (height: number, at: number) => rootOf(all, at * 2 ** height, (at + 1) * 2 ** height);
    const proof = await proveInclusion(1, all.length, read);
    expect(
      verifyInclusion({ index: 1, leaf: hashes[1] as Uint8Array, proof }, { size: all.length, root: rootOf(all) }),
    ).toBe(true);
  });

  it('is deferred by a legal retention, reports its end, and then runs by itself', async () => {
    const log = new HiddenLog();
    log.retention = () => 'ai-act';
    await log.write(log.event(ann), log.event(ben), log.event(ben), log.event(ben));
    const until = Date.UTC(2026, 6, 1) + 183 * DAY;
    const asked = await eraseSubject(deskOf(log), ask);
    expect(asked).toMatchObject({ value: { outcome: 'deferred', basis: 'ai-act', until } });
    expect(await eraseSubject(deskOf(log), ask)).toEqual(asked);
    // A repeated request with another basis gets the first basis.
    const other = await eraseSubject(deskOf(log), { ...ask, basis: 'contract' });
    expect(other).toMatchObject({ value: { outcome: 'deferred', basis: 'ai-act', asked: 'gdpr-17' } });
    expect(await settleErasures(deskOf(log))).toBe(0);
    // Told once, however often it is looked at.
    expect(await toldOf(log, 'erasure.exec')).toMatchObject([
      { outcome: 'deferred', basis: 'gdpr-17', waits: 'ai-act', until },
    ]);
    expect((await shown(log))[0]).toMatchObject({ subject: expect.any(String) });
    expect(await listErasures(deskOf(log), 'dev')).toMatchObject([{ subject: 'c1:ann', deferred: { until } }]);
    log.now = until + 1;
    expect(await settleErasures(deskOf(log))).toBe(1);
    expect(await listErasures(deskOf(log), 'dev')).toEqual([]);
  });

  it('covers records before the request; later records have another key', async () => {
    const log = new HiddenLog();
    log.retention = () => 'ai-act';
    await log.write(log.event(ann));
    await eraseSubject(deskOf(log), ask);
    log.keys.forget();
    await log.write(log.event(ann));
    const { entries } = log.read();
    const place = log.place();
    const asked = entries.findIndex((entry) => new TextDecoder().decode(entry).includes('inference.complete'));
    log.now += 250 * DAY;
    expect(await settleErasures(deskOf(log))).toBe(1);
    const hidden = await new SidecarReader(place, log.newKeys()).read(0, entries);
    expect(hidden[asked]).toBe('erased');
    expect(hidden.filter((one) => typeof one === 'object')).toHaveLength(1);
    // Asked for again, it means that one, too.
    expect(await eraseSubject(deskOf(log), ask)).toMatchObject({ value: { outcome: 'done' } });
    const again = await new SidecarReader(place, log.newKeys()).read(0, entries);
    expect(again.filter((one) => typeof one === 'object')).toEqual([]);
  });

  it('deferred erasures of one tenant take no slot of another tenant', async () => {
    const log = new HiddenLog();
    await log.write(log.event(ann), log.event({ ...ann, tenant: 'other' }));
    const limit = ERASURES_PER_TENANT_MAX;
    for (let at = 0; at < limit; at += 1) {
      await log.store.create('sidecar', erasureName(ZONE, 'dev', `waits-${at}`), new Uint8Array(1));
    }
    const asked = { subject: ann.subject, basis: 'gdpr-17' };
    expect(await eraseSubject(deskOf(log), { ...asked, tenant: 'dev' })).toMatchObject({
      refusal: { reason: 'erasures_waiting', params: { limit } },
    });
    expect(await eraseSubject(deskOf(log), { ...asked, tenant: 'other' })).toMatchObject({
      value: { outcome: 'done' },
    });
  });

  it('every pending erasure gets its turn, a bounded number a round', () => {
    const all = Array.from({ length: 10 }, (_, at) => at);
    const round = 300_000;
    expect(turnOf(all, 10, 7 * round)).toEqual(all);
    expect([0, 1, 2, 3].map((at) => turnOf(all, 4, at * round))).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
      [0, 1, 2, 3],
    ]);
  });

  it('is deferred while its subject or tenant is held, and runs after release', async () => {
    for (const subject of ['c1:ann', undefined]) {
      const log = await twoSubjects();
      const id = crypto.randomUUID();
      await setHold(deskOf(log), { id, tenant: 'dev', subject, reason: 'case 7' });
      expect(await eraseSubject(deskOf(log), ask)).toMatchObject({ value: { outcome: 'deferred', basis: 'hold' } });
      expect((await shown(log))[0]).not.toBe('erased');
      await releaseHold(deskOf(log), 'dev', id, { reason: 'over' });
      expect(await settleErasures(deskOf(log))).toBe(1);
      expect((await shown(log))[0]).toBe('erased');
      const outcomes = (await toldOf(log, 'erasure.exec')).map((leaf) => leaf.outcome);
      expect(outcomes.sort()).toEqual(['deferred', 'done']);
    }
    const log = await twoSubjects();
    await setHold(deskOf(log), { id: crypto.randomUUID(), tenant: 'dev', subject: 'c1:ben', reason: 'case 7' });
    await setHold(deskOf(log), { id: crypto.randomUUID(), tenant: 'other', reason: 'case 8' });
    expect(await eraseSubject(deskOf(log), ask)).toMatchObject({ value: { outcome: 'done' } });
  });

  it.each(faults)('%s, at each of its calls: a repeated request or the timer completes it', async (fate) => {
    let calls = 1;
    const seen: string[] = [];
    for (let broken = 0; broken < calls; broken += 1) {
      const log = await twoSubjects();
      const store = faultyStore(log.store, broken, fate);
      await eraseSubject(deskOf(log, store), ask).catch(() => {});
      if (broken === 0) {
        const whole = faultyStore((await twoSubjects()).store, -1, fate);
        calls = (await countCalls(whole)) + 2;
      }
      seen.push(store.calls[broken] ?? '');
      // Another process continues, and a later request repeats.
      await settleErasures(deskOf(log));
      const last = await eraseSubject(deskOf(log), ask);
      const what = `call ${broken}: ${store.calls[broken]}`;
      expect(last, what).toMatchObject({ ok: true });
      const hidden = await shown(log);
      expect([hidden[0], hidden[2]], what).toEqual(['erased', 'erased']);
      expect(
        [hidden[1], hidden[3]].map((one) => typeof one),
        what,
      ).toEqual(['object', 'object']);
      const told = (await toldOf(log, 'erasure.exec')).filter((leaf) => leaf.outcome === 'done');
      expect(told.length, what).toBeGreaterThan(0);
      expect(new Set(told.map((leaf) => leaf.erased)).size, what).toBe(1);
      expect(await listErasures(deskOf(log), 'dev'), what).toEqual([]);
    }
    for (const kind of ['create sidecar eu/erasures/', 'replace sidecar eu/names/', 'remove sidecar eu/subjects/']) {
      expect(
        seen.some((what) => what.startsWith(kind)),
        kind,
      ).toBe(true);
    }
    expect(seen.some((what) => what.startsWith('create intake'))).toBe(true);
    expect(seen.some((what) => what.startsWith('remove sidecar eu/erasures/'))).toBe(true);
  });
});

async function countCalls(store: ReturnType<typeof faultyStore>): Promise<number> {
  const log = new HiddenLog();
  await eraseSubject(deskOf(log, store), ask);
  return store.calls.length;
}
