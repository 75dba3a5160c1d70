// Storage of which one call goes wrong.
import type { LogStore } from '../../functions/audit/log/log-store.ts';
import { Failed, type Fate } from '../functions/audit/scheduler.ts';

/** Call number `broken` ends like that; all others are done. `calls` tells what was asked. */
export function faultyStore(store: LogStore, broken: number, fate: Fate): LogStore & { readonly calls: string[] } {
  const calls: string[] = [];
  const ask = async <T>(what: string, run: () => Promise<T>): Promise<T> => {
    calls.push(what);
    if (calls.length - 1 !== broken) return run();
    if (fate === 'failed') throw new Failed(what);
    const value = await run();
    if (fate === 'failed but done') throw new Failed(what);
    return typeof value === 'boolean' ? (false as T) : value;
  };
  return { calls, ...askedStore(store, ask) };
}

/** Storage each call of which is made, or not, by `ask`. */
export const askedStore = (store: LogStore, ask: <T>(what: string, run: () => Promise<T>) => Promise<T>): LogStore => ({
  read: (area, name) => ask(`read ${area} ${name}`, () => store.read(area, name)),
  create: (area, name, bytes) => ask(`create ${area} ${name}`, () => store.create(area, name, bytes)),
  replace: (area, name, bytes, version) =>
    ask(`replace ${area} ${name}`, () => store.replace(area, name, bytes, version)),
  list: (area, prefix, limit) => ask(`list ${area} ${prefix}`, () => store.list(area, prefix, limit)),
  clock: () => store.clock?.(),
  remove: (area, name) => ask(`remove ${area} ${name}`, () => store.remove(area, name)),
});

/** The ways in which a caller does not know, or is told wrongly, what became of its call. */
export const faults: readonly Fate[] = ['failed', 'failed but done', 'done but denied'];
