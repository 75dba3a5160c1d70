// A store that counts the writes of this process, so that followers of a log notice growth without a read.
import type { Area, LogStore } from './log-store.ts';

export interface NotifyingStore {
  /** Counts writes to an area of a zone, including those of unknown outcome. */
  changes(area: Area, zone: string): number;
}

export function noticing<Store extends LogStore>(store: Store): Store & NotifyingStore {
  const counts = new Map<string, number>();
  const keyOf = (area: Area, zone: string) => `${area} ${zone}`;
  /** Names begin with their zone: `log-names.ts`. */
  const noticed = async (area: Area, name: string, written: Promise<boolean>): Promise<boolean> => {
    try {
      return await written;
    } finally {
      const key = keyOf(area, name.slice(0, name.indexOf('/')));
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  };
  return {
    ...store,
    create: (area, name, bytes) => noticed(area, name, store.create(area, name, bytes)),
    replace: (area, name, bytes, version) => noticed(area, name, store.replace(area, name, bytes, version)),
    changes: (area, zone) => counts.get(keyOf(area, zone)) ?? 0,
  };
}
