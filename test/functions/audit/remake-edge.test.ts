import { describe, expect, it } from 'vitest';
import { receive } from '../../../functions/audit/intake/intake.ts';
import { stateName } from '../../../functions/audit/log/log-names.ts';
import type { LogStore } from '../../../functions/audit/log/log-store.ts';
import { Sequencer } from '../../../functions/audit/sequencer/sequencer.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { MemoryStore, readStoredLog } from '../../fake/log-store.ts';

const EPOCH = '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11';
const key = await openSigningKey(new Uint8Array(32).fill(3));

class Log {
  readonly store = new MemoryStore();
  /** Storage as the writer sees it. */
  seen: LogStore = this.store;
  #time = Date.UTC(2026, 5, 1);
  #next = 1;
  #ids = 0;

  #id = () => {
    this.#ids += 1;
    return eventId(this.#ids, new Uint8Array(10));
  };

  async deliver(count: number): Promise<void> {
    const to = this.#next + count - 1;
    const event = () => ({ v: 1, id: this.#id(), type: 'route', at: 1, producer: 'edge', tenant: 'dev' });
    const rows = [{ to, t: 1, events: Array.from({ length: count }, event) }];
    const delivery = { v: 1 as const, producer: 'gate/dev/eu', epoch: EPOCH, oldest: 1, rows };
    const one = await receive(delivery, this.#time, async () => '');
    this.#next = to + 1;
    await this.store.create('intake', `eu/a/b/${to}`, new TextEncoder().encode(JSON.stringify(one)));
  }

  /** A process that has nothing in memory, until it has nothing to do. */
  async write(): Promise<string[]> {
    const parts = { store: this.seen, zone: 'eu', base: 'audit.example', newId: this.#id };
    const now = () => {
      this.#time += 5;
      return this.#time;
    };
    const writer = new Sequencer({ ...parts, now, signers: (name) => [key.signer(name)] });
    const kinds: string[] = [];
    while (kinds.at(-1) !== 'idle' && kinds.length < 6) kinds.push((await writer.round()).kind);
    return kinds;
  }

  partials(): string[] {
    return [...this.store.area('state').keys()].filter((name) => name.includes('.p/'));
  }
}

/** Several commits: the last bundle is of the records of more than one, and two levels are not full. */
async function written(): Promise<Log> {
  const log = new Log();
  for (const count of [300, 17, 250, 40, 3]) {
    await log.deliver(count);
    await log.write();
  }
  return log;
}

describe('C9 partial tiles that are lost', () => {
  it('each of them, and all: the log goes on, and they are there again', async () => {
    const names = (await written()).partials();
    expect(names.length).toBeGreaterThan(2);
    for (const lost of [...names.map((name) => [name]), names]) {
      const log = await written();
      for (const name of lost) await log.store.remove('state', name);
      await log.deliver(2);
      expect(await log.write()).toEqual(['committed', 'idle']);
      expect(readStoredLog(log.store, 'eu', 2026).entries).toHaveLength(613);
    }
  });

  it('also when the last commit was not published yet', async () => {
    const log = await written();
    await log.deliver(2);
    const { store } = log;
    log.seen = {
      read: (area, name) => store.read(area, name),
      async create(area, name, bytes) {
        if (name.includes('tile/')) throw new Error('storage');
        return store.create(area, name, bytes);
      },
      replace: (area, name, bytes, version) => store.replace(area, name, bytes, version),
      list: (area, prefix, limit) => store.list(area, prefix, limit),
      remove: (area, name) => store.remove(area, name),
    };
    await expect(log.write()).rejects.toThrow('storage');
    log.seen = log.store;
    for (const name of log.partials()) await log.store.remove('state', name);
    await log.write();
    expect(readStoredLog(log.store, 'eu', 2026).entries).toHaveLength(613);
  });

  it('a locked record that contradicts the state stops the log with an error', async () => {
    const log = await written();
    const before = log.store.area('state').get(stateName('eu'))?.version;
    for (const name of log.partials()) await log.store.remove('state', name);
    const records = [...log.store.area('log')].filter(([name]) => name.includes('/wal/'));
    const [last] = records.slice(-1);
    const [older] = records.slice(-2);
    if (!last || !older) throw new Error('no records');
    log.store.area('log').set(last[0], older[1]);
    await log.deliver(1);
    await expect(log.write()).rejects.toThrow(/not the record/);
    expect(log.store.area('state').get(stateName('eu'))?.version).toBe(before);
  });
});
