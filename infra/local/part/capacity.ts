// Capacity of the storage emulator: free disk space, or a quota. A full account refuses writes with 507
// before any effect, and continues to read and delete.
import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import path from 'node:path';

/** Room left on the disk for journals and snapshots of writes under way, in bytes. */
const RESERVE_BYTES = 4 * 2 ** 20;
/** Lifetime of a cached disk measurement, ms: a walk over the files takes a millisecond. */
const HELD_MS = 200;
/** Interval of log lines about full storage, ms. */
const LOG_MS = 60_000;
const GROWING: readonly (string | undefined)[] = ['PUT', 'POST', 'PATCH', 'MERGE'];

export interface CapacityOptions {
  readonly folder: string;
  /** Returns the time, ms. */
  now(): number;
  /** Reports full storage to the operator, once a minute. */
  log(line: string): void;
}

export class Capacity {
  readonly #options: CapacityOptions;
  #known: { readonly full: boolean; readonly at: number } | undefined;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /**
   * Reports whether writes are refused. The file `quota` in the folder, if present, has the bytes of the
   * account.
   */
  get full(): boolean {
    const { folder, now, log } = this.#options;
    const at = now();
    if (this.#known && at - this.#known.at < HELD_MS) return this.#known.full;
    const quota = readQuota(folder);
    const { bavail, bsize } = statfsSync(folder);
    const full = bavail * bsize < RESERVE_BYTES || (quota !== undefined && bytesIn(folder) >= quota);
    this.#known = { full, at };
    if (full && at - this.#loggedAt >= LOG_MS) {
      this.#loggedAt = at;
      log(`storage is full: ${folder} takes nothing more`);
    }
    return full;
  }
}

function readQuota(folder: string): number | undefined {
  try {
    const quota = Number(readFileSync(path.join(folder, 'quota'), 'utf8'));
    return Number.isFinite(quota) ? quota : undefined;
  } catch {
    return undefined;
  }
}

function bytesIn(folder: string): number {
  let sum = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    // A snapshot may vanish while it is replaced.
    sum += entry.isDirectory() ? bytesIn(file) : (statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  }
  return sum;
}

/** Reports whether a request stores data. A lease changes existing data, and its release frees space. */
export const isGrowing = ({ method, url = '' }: Pick<IncomingMessage, 'method' | 'url'>): boolean =>
  GROWING.includes(method) && !/[?&]comp=lease\b/.test(url);

const CODE = 'InsufficientStorage';
const WORDS = 'Storage is full.';

/** Refuses writes of a server while the account is full. Wraps the existing listeners. */
export function refuseWhenFull(server: Server, capacity: Pick<Capacity, 'full'>): void {
  type Listener = (request: IncomingMessage, response: ServerResponse) => void;
  const listeners = server.listeners('request') as Listener[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!isGrowing(request) || !capacity.full) {
      for (const listener of listeners) listener.call(server, request, response);
      return;
    }
    request.resume();
    const json = (request.headers.accept ?? '').includes('json');
    const body = json
      ? JSON.stringify({ 'odata.error': { code: CODE, message: { lang: 'en-US', value: WORDS } } })
      : `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${CODE}</Code><Message>${WORDS}</Message></Error>`;
    response.writeHead(507, {
      'content-type': json ? 'application/json' : 'application/xml',
      'content-length': Buffer.byteLength(body),
      'x-ms-error-code': CODE,
    });
    response.end(body);
  });
}
