// Reads the deliveries of a commit, up to its memory bound. An unreadable delivery is set aside under another
// name for an operator; the log reports its events as missing.

import { MiB } from '../../../shared/bytes.ts';
import type { LogStore, StoredFile } from '../log/log-store.ts';
import { type Received, readReceived } from './intake.ts';

/** Deliveries of one commit, at least one of them: four of the longest, many times the volume of a second. */
export const COMMIT_BYTES = 16 * MiB;
/** Deliveries that one commit reads concurrently, each at most a delivery with its private fields long. */
const INTAKE_READS_MAX = 32;

/** No zone's name begins with a point. */
export const asideName = (name: string): string => `.unreadable/${name}`;

/** A delivery in the intake. */
export interface Waiting {
  readonly name: string;
  readonly received: Received;
}

export interface Read {
  readonly waiting: readonly Waiting[];
  /** Number of deliveries that were set aside. */
  readonly unreadable: number;
  /** The last that was looked at. */
  readonly last: string | undefined;
}

/** In the order of the names; at least one. */
export async function readWaiting(store: LogStore, names: readonly string[]): Promise<Read> {
  const waiting: Waiting[] = [];
  let [bytes, unreadable] = [0, 0];
  let last: string | undefined;
  for (let from = 0; from < names.length; from += INTAKE_READS_MAX) {
    const some = names.slice(from, from + INTAKE_READS_MAX);
    const read = await Promise.all(some.map((name) => store.read('intake', name)));
    for (const [at, name] of some.entries()) {
      const stored = read[at];
      if (!stored) continue;
      bytes += stored.bytes.length;
      if (bytes > COMMIT_BYTES && last !== undefined) return { waiting, unreadable, last };
      last = name;
      const one = open(name, stored);
      if (one) waiting.push(one);
      else {
        await putAside(store, name, stored);
        unreadable += 1;
      }
    }
  }
  return { waiting, unreadable, last };
}

function open(name: string, { bytes }: StoredFile): Waiting | undefined {
  try {
    return { name, received: readReceived(bytes) };
  } catch {
    return undefined;
  }
}

async function putAside(store: LogStore, name: string, { bytes }: StoredFile): Promise<void> {
  await store.create('intake', asideName(name), bytes);
  await store.remove('intake', name);
}
