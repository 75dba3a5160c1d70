import { z } from 'zod';
import type { Result } from '../../../../shared/result.ts';
import { ok } from '../../../../shared/result.ts';
import type { SealPrivateKey } from '../../../../shared/seal/setup.ts';
import { type ZoneKey, zoneKey } from '../../../../shared/seal/zone-key.ts';
import { readJson } from '../settings/settings.ts';

export type HeldZoneKeys = ReadonlyMap<string, SealPrivateKey>;

/** The keys that files of this agent's zone are sealed to. They live in memory only, like the agent's own. */
export interface ZoneKeyring {
  /**
   * Returns the private halves by id, fetched at the first call and stored. With `wanted`, an id that is not stored,
   * they are fetched once more if the settings name it by now. Refuses with `uploads_unavailable`: try later; or with
   * `attestation_invalid`, `zone_unserved`, `token_invalid` or `seal_broken`: something is set up wrong, and the work is
   * for other agents.
   */
  held(wanted?: string): Promise<Result<HeldZoneKeys>>;
  /** Returns the public half, to seal to; `undefined` when it is none of this zone's. */
  find(kid: string): ZoneKey | undefined;
}

/** Entry of AURICLE_ZONE_KEYS_FILE: a public half, and in a key vault the name and version of the key. */
const fileKey = zoneKey.extend({
  vaultKey: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,127}\/[0-9a-f]{32}$/)
    .optional(),
});
export type FileKey = z.infer<typeof fileKey>;
const fileKeys = z.record(z.string(), z.array(fileKey).min(1).max(8));

/** Fetches the private halves of `expected`, the keys of the zone, newest first. */
export type RequestZoneKeys = (expected: readonly FileKey[]) => Promise<Result<HeldZoneKeys>>;

export interface ZoneKeyringOptions {
  readonly zoneKeysFile: string;
  readonly zone: string;
  readonly request: RequestZoneKeys;
  /** Receives the ids of released keys, for the record. */
  readonly onReleased?: (kids: readonly string[]) => void;
}

export function createZoneKeyring({ zoneKeysFile, zone, request, onReleased }: ZoneKeyringOptions): ZoneKeyring {
  let held: HeldZoneKeys | undefined;
  let pending: Promise<Result<HeldZoneKeys>> | undefined;

  /** Read at each use: keys are renewed by putting a new one first. */
  const expected = (): readonly FileKey[] => fileKeys.parse(readJson(zoneKeysFile))[zone] ?? [];
  const find = (kid: string) => expected().find((key) => key.kid === kid);

  async function fetchKeys(): Promise<Result<HeldZoneKeys>> {
    const released = await request(expected());
    if (released.ok) {
      held = released.value;
      onReleased?.([...held.keys()]);
    }
    return released;
  }

  return {
    find,
    async held(wanted) {
      if (held && (wanted === undefined || held.has(wanted) || !find(wanted))) return ok(held);
      pending ??= fetchKeys().finally(() => {
        pending = undefined;
      });
      return pending;
    },
  };
}
