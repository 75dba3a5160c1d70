import { describe, expect, it } from 'vitest';
import { receive } from '../../../functions/audit/intake/intake.ts';
import { openLogKeys } from '../../../functions/audit/log/log-keys.ts';
import { readLogHealth } from '../../../functions/audit/read/read-log-health.ts';
import { Sequencer } from '../../../functions/audit/sequencer/sequencer.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { MemoryStore } from '../../fake/log-store.ts';

const EPOCH = '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11';

describe('C9 how a log is doing', () => {
  it('reports queued deliveries, progress and gaps, without any content', async () => {
    const store = Object.assign(new MemoryStore(), { isLocked: async () => true });
    const keys = await openLogKeys({ AUDIT_KEY: Buffer.alloc(32, 1).toString('base64') });
    if (!keys) throw new Error('no keys');
    let time = Date.UTC(2026, 5, 1);
    const now = () => time;
    const desk = { store, ...keys, now, settings: { MODE: 'production' as const } };
    expect(await readLogHealth(desk, 'eu')).toEqual({
      ...{
        zone: 'eu',
        at: time,
        intake: { waiting: 0, oldestMs: 0 },
        witnesses: false,
        locked: true,
        development: false,
      },
    });
    let id = 0;
    const nextId = () => {
      id += 1;
      return eventId(id, new Uint8Array(10));
    };
    const put = async (first: number, types: string[]) => {
      const events = types.map((type) => ({ v: 1, id: nextId(), type, at: 1, producer: 'edge', tenant: 'acme' }));
      const rows = [{ to: first + types.length - 1, t: 1, events }];
      const one = await receive(
        { v: 1, producer: 'gate/acme/eu', epoch: EPOCH, oldest: 1, rows },
        time,
        async () => '',
      );
      await store.create('intake', `eu/${first}`, new TextEncoder().encode(JSON.stringify(one)));
    };
    const writer = new Sequencer({ ...keys, store, now, zone: 'eu', base: 'audit.example', newId: nextId });
    const round = async () => {
      time += 10;
      return writer.round();
    };
    await put(1, ['producer.open', 'route']);
    await round();
    await round();
    await put(9, ['route']);
    time += 50_000;
    await round();
    const health = await readLogHealth(desk, 'eu');
    // shard.open, the two events, and the leaf that says that others are late.
    expect(health.log).toMatchObject({ origin: 'audit.example/eu/2026', size: 4, published: 4, open: 1, late: 1 });
    expect(health.intake).toEqual({ waiting: 1, oldestMs: 50_010 });
    expect(JSON.stringify(health)).not.toContain('acme');
  });
});
