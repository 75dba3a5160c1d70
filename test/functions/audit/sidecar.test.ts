import { describe, expect, it } from 'vitest';
import { sidecarName } from '../../../functions/audit/log/log-names.ts';
import { openHidden, openHide, readBox } from '../../../functions/audit/sidecar/hide.ts';
import { SidecarReader } from '../../../functions/audit/sidecar/sidecar.ts';
import { wrapWith } from '../../../functions/audit/sidecar/sidecar-box.ts';
import { SidecarKeys } from '../../../functions/audit/sidecar/sidecar-keys.ts';
import { checkDisclosure, disclose, readDisclosure } from '../../../shared/audit/commitment.ts';
import { faults, faultyStore } from '../../fake/faulty-log-store.ts';
import { HiddenLog, ZONE } from './hidden-log.ts';

const ann = { subject: 'c1:ann', audioSeconds: 1.875 };
const ben = { subject: 'c1:ben', audioSeconds: 2 };
const valuesOf = (hidden: unknown) =>
  typeof hidden === 'object' && hidden
    ? Object.fromEntries(Object.values(hidden).map((one) => Object.values(readDisclosure(one) ?? {})))
    : hidden;
const names = (log: HiddenLog, prefix: string) =>
  [...log.store.area('sidecar').keys()].filter((name) => name.startsWith(`${ZONE}/${prefix}`));

describe('C12 hidden fields of entries', () => {
  it('are read for any range, entry by entry, and match their commitments', async () => {
    const log = new HiddenLog();
    for (let commit = 0; commit < 6; commit += 1) {
      await log.write(log.event(ann), log.event({ type: 'route', attempt: commit }), log.event(ben));
    }
    const { entries, leaves } = log.read();
    const reader = new SidecarReader(log.place(), log.newKeys());
    const whole = await reader.read(0, entries);
    expect(whole).toHaveLength(19);
    for (const [at, leaf] of leaves.entries()) {
      const hidden = whole[at];
      expect(hidden === undefined, leaf.type).toBe(leaf.sd === undefined);
      if (typeof hidden !== 'object') continue;
      expect(Object.keys(hidden).sort()).toEqual(Object.keys(leaf.sd ?? {}).sort());
      for (const [name, text] of Object.entries(hidden)) {
        expect(checkDisclosure(text, leaf.sd ?? {})?.name).toBe(name);
      }
      expect(valuesOf(hidden)).toMatchObject(at % 3 === 1 ? ann : ben);
    }
    for (let from = 0; from < entries.length; from += 1) {
      for (const to of [from + 1, Math.min(entries.length, from + 5)]) {
        expect(await reader.read(from, entries.slice(from, to))).toEqual(whole.slice(from, to));
      }
    }
  });

  it('is of the commit that came to be, however many others left files', async () => {
    const log = new HiddenLog();
    await log.write(log.event(ann));
    const { entries } = log.read();
    const before = await new SidecarReader(log.place(), log.keys).read(0, entries);
    const [name = ''] = names(log, '2026/');
    const lost = new TextEncoder().encode(JSON.stringify({ v: 1, from: 0, hidden: ['AAAA', 'AAAA', 'AAAA', 'AAAA'] }));
    for (const size of [1, 2, 3]) {
      const other = sidecarName(ZONE, 2026, 0, { size, root: new Uint8Array(32).fill(size) });
      await log.store.create('sidecar', other, lost);
    }
    expect(names(log, '2026/').length).toBe(4);
    expect(await new SidecarReader(log.place(), log.keys).read(0, entries)).toEqual(before);
    await log.store.remove('sidecar', name);
    expect(await new SidecarReader(log.place(), log.keys).read(0, entries)).toEqual(entries.map(() => undefined));
  });

  it('is nothing where it is forged: another leaf’s, another tenant’s, or not decipherable', async () => {
    const log = new HiddenLog();
    await log.write(log.event(ann), log.event(ben), log.event({ ...ann, tenant: 'other' }));
    const { entries } = log.read();
    const [name = ''] = names(log, '2026/');
    const kept = await log.store.read('sidecar', name);
    const file = JSON.parse(new TextDecoder().decode(kept?.bytes));
    const [a, b, c] = file.hidden.slice(1) as [string, string, string];
    const put = (hidden: unknown[]) =>
      log.store.area('sidecar').set(name, {
        bytes: new TextEncoder().encode(JSON.stringify({ ...file, hidden: [null, ...hidden] })),
        version: 'x',
      });
    put([b, a, a]);
    expect(await new SidecarReader(log.place(), log.newKeys()).read(0, entries)).toEqual([
      undefined,
      undefined,
      undefined,
      'erased',
    ]);
    put([`${a.slice(0, -8)}AAAAAAAA`, '2.x.y', c]);
    const read = await new SidecarReader(log.place(), log.newKeys()).read(0, entries);
    expect(read.slice(0, 3)).toEqual([undefined, undefined, undefined]);
    expect(valuesOf(read[3])).toMatchObject(ann);
  });

  it('need the secrets of subject and month, and are erased without either', async () => {
    for (const gone of ['subjects/', 'periods/', 'keys/']) {
      const log = new HiddenLog();
      await log.write(log.event(ann));
      const { entries } = log.read();
      for (const name of names(log, gone)) await log.store.remove('sidecar', name);
      expect(await new SidecarReader(log.place(), log.newKeys()).read(1, entries.slice(1)), gone).toEqual(['erased']);
    }
    const log = new HiddenLog();
    await log.write(log.event(ann), log.event(ben));
    const [, first = ''] = await new SidecarReader(log.place(), log.keys).boxes(0, 2);
    await log.store.remove('sidecar', `${ZONE}/subjects/dev/${readBox(first)?.sid}`);
    const read = await new SidecarReader(log.place(), log.newKeys()).read(0, log.read().entries);
    expect([read[1], valuesOf(read[2])]).toEqual(['erased', expect.objectContaining(ben)]);
  });

  it('a wrong setting is a fault, and not an erasure', async () => {
    const log = new HiddenLog();
    await log.write(log.event(ann));
    const wrap = wrapWith(Buffer.alloc(32).toString('base64'));
    const keys = new SidecarKeys({ store: log.store, zone: ZONE, wrap, now: () => log.now });
    await expect(new SidecarReader(log.place(), keys).read(0, log.read().entries)).rejects.toThrow();
    expect(() => wrapWith('short')).toThrow();
  });

  it('after key rotation both keys open, and used secrets are wrapped again', async () => {
    const log = new HiddenLog();
    await log.write(log.event(ann));
    const [before, after] = [7, 8].map((byte) => Buffer.alloc(32, byte).toString('base64'));
    const opened = async (secrets: string) => {
      const keys = new SidecarKeys({ store: log.store, zone: ZONE, wrap: wrapWith(secrets), now: () => log.now });
      return valuesOf((await new SidecarReader(log.place(), keys).read(0, log.read().entries))[1]);
    };
    const kept = () => log.store.area('sidecar').get(`${ZONE}/keys/dev`)?.bytes;
    const first = kept();
    await expect(opened(`${after}`)).rejects.toThrow();
    // A key that only unwraps changes nothing, so other processes may still have the old setting.
    expect(await opened(`${before},${after}`)).toMatchObject(ann);
    expect(kept()).toEqual(first);
    expect(await opened(`${after},${before}`)).toMatchObject(ann);
    expect(kept()).not.toEqual(first);
    expect(await opened(`${after}`)).toMatchObject(ann);
    await expect(opened(`${before}`)).rejects.toThrow();
  });

  it('names and boxes reveal no subject, and tenants share nothing', async () => {
    const log = new HiddenLog();
    // Long enough not to be in random letters by chance.
    const subject = 'c1:ann-of-the-clinic';
    const own = { ...ann, subject };
    await log.write(log.event(own), log.event({ ...own, tenant: 'other' }), log.event(own));
    const all = [...log.store.area('sidecar')].map(([name, { bytes }]) => name + new TextDecoder().decode(bytes));
    expect(all.join()).not.toContain(subject.slice(3));
    const tags = names(log, 'names/').map((name) => name.split('/').at(-1));
    expect(new Set(tags).size).toBe(2);
    const sids = (await new SidecarReader(log.place(), log.keys).boxes(1, 4)).map((box) => readBox(box ?? '')?.sid);
    expect([sids[0] === sids[2], sids[0] === sids[1]]).toEqual([true, false]);
  });

  it('concurrent records make one secret of a subject, with its months', async () => {
    const log = new HiddenLog();
    const other = new HiddenLog(log.store);
    await Promise.all([log, other, log].map((one) => one.keys.toHide('dev', 'c1:ann', 'hipaa')));
    expect(names(log, 'subjects/')).toHaveLength(1);
    log.now += 40 * 86_400_000;
    await log.keys.toHide('dev', 'c1:ann', 'hipaa');
    expect(names(log, 'subjects/')).toHaveLength(1);
    expect(names(log, 'periods/')).toEqual([`${ZONE}/periods/hipaa/202606/dev`, `${ZONE}/periods/hipaa/202607/dev`]);
  });

  it.each(faults)('%s, at each call of a subject’s first record: it opens, with one secret', async (fate) => {
    for (let broken = 0, calls = 1; broken < calls; broken += 1) {
      const log = new HiddenLog();
      const store = faultyStore(log.store, broken, fate);
      const disclosures = await disclose(new Uint8Array(32), { subject: 'c1:ann' });
      const first = openHide(log.newKeys(store));
      const hidden = [await first({ tn: 'dev' }, disclosures).catch(() => undefined)];
      calls = Math.max(calls, store.calls.length);
      // The same process goes on, and another one.
      hidden.push(await first({ tn: 'dev' }, disclosures), await openHide(log.newKeys())({ tn: 'dev' }, disclosures));
      const what = `call ${broken}: ${store.calls[broken]}`;
      for (const box of hidden) {
        if (box !== undefined) expect(await openHidden(log.newKeys(), 'dev', box), what).toEqual(disclosures);
      }
      expect(new Set(hidden.slice(1).map((box) => readBox(box ?? '')?.sid)).size, what).toBe(1);
    }
  });
});
