// The release map, signed by the functions and passed on by the roster: the routing of revisions. An agent
// applies the newest map it has received, also after a restart, and accepts no older one.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';
import type { ModelDescription } from '../../../../shared/pool/description.ts';
import { type Part, partOf, RELEASE_TYPE, type ReleaseMap, releaseMap } from '../../../../shared/registry/release.ts';
import type { Log } from '../telemetry/log.ts';

/**
 * Time an agent still serves a withdrawn revision: edges hold snapshots of a second ago, and requests are in
 * flight.
 */
export const RELEASE_GRACE_MS = 3_000;

export interface ReleaseMapStore {
  /** Generation of the current map; 0 before there is one, `undefined` where none is accepted. */
  generation(): number | undefined;
  /** Returns the newest map; `undefined` before there is one. */
  current(): ReleaseMap | undefined;
  /** A map that was told. What is not signed, or older than what is known, changes nothing. */
  take(signed: string): Promise<void>;
  /**
   * Part of a revision of this agent in the release; `undefined`: it serves no request. Without a map all may
   * serve.
   */
  part(model: ModelDescription): Part | undefined;
}

interface CurrentMap {
  readonly map: ReleaseMap;
  readonly since: number;
}

export interface ReleaseMapOptions {
  /** Keys of the functions; without them no map is believed, and the agent's own word counts. */
  readonly keys: JSONWebKeySet | undefined;
  /** File of the map. Once lost, the next received map counts; a forged one fails its signature. */
  readonly stateDir: string;
  readonly now: () => number;
  readonly log: Log;
}

export async function openReleaseMap({ keys, stateDir, now, log }: ReleaseMapOptions): Promise<ReleaseMapStore> {
  const file = path.join(stateDir, 'release.jws');
  const keySet = keys && createLocalJWKSet(keys);
  let held: CurrentMap | undefined;
  /** The map before the current one, which edges apply for a moment more. */
  let before: CurrentMap | undefined;

  async function open(signed: string): Promise<ReleaseMap | undefined> {
    if (!keySet) return undefined;
    try {
      const { payload, protectedHeader } = await compactVerify(signed, keySet, { algorithms: ['ES256'] });
      if (protectedHeader.typ !== RELEASE_TYPE) return undefined;
      return releaseMap.parse(JSON.parse(new TextDecoder().decode(payload)));
    } catch {
      return undefined;
    }
  }

  const kept = keySet && (await open(readKept(file)));
  if (kept) held = { map: kept, since: 0 };

  return {
    generation: () => (keySet ? (held?.map.generation ?? 0) : undefined),
    current: () => held?.map,
    async take(signed) {
      const map = await open(signed);
      const known = held?.map.generation ?? -1;
      if (!map || map.generation < known) {
        log('release-refused', { reason: map ? 'older' : 'unsigned', ...(map && { count: map.generation }) });
        return;
      }
      if (map.generation === known) return;
      mkdirSync(stateDir, { recursive: true });
      writeFileSync(`${file}.new`, signed, { mode: 0o600 });
      renameSync(`${file}.new`, file);
      [before, held] = [held, { map, since: now() }];
      log('release', { count: map.generation });
    },
    part(model) {
      if (!held) return 'full';
      const found = partOf(held.map.models[model.name], model);
      const settled = now() - held.since >= RELEASE_GRACE_MS;
      return found ?? (settled ? undefined : partOf(before?.map.models[model.name], model));
    },
  };
}

function readKept(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
