import { isReason, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { SealPrivateKey } from '../../../../shared/seal/setup.ts';
import { type ZoneKey, zoneKeys } from '../../../../shared/seal/zone-key.ts';
import { describeRelease, openRelease, RELEASE_TYPE, releaseAnswer } from '../../../../shared/seal/zone-key-release.ts';
import { readJson, type Settings } from '../settings/settings.ts';
import { ATTESTATION_MS } from './attest.ts';
import { type Keys, sha256 } from './keys.ts';
import { readPoolToken } from './pool-token.ts';

export type HeldZoneKeys = ReadonlyMap<string, SealPrivateKey>;

/** The keys that files of this agent's zone are sealed to. They live in memory only, like the agent's own. */
export interface ZoneKeyring {
  /**
   * The private halves by id, asked for at the first call and kept. With `wanted`, an id that is not held, the
   * authority is asked once more if the settings name it by now. Refuses with `uploads_unavailable`: try later; or with
   * `attestation_invalid`, `zone_unserved`, `token_invalid` or `seal_broken`: something is set up wrong, and the work is
   * for other agents.
   */
  held(wanted?: string): Promise<Result<HeldZoneKeys>>;
  /** The public half, to seal to; `undefined` when it is none of this zone's. */
  find(kid: string): ZoneKey | undefined;
}

export interface ZoneKeyringOptions {
  readonly release: NonNullable<Settings['release']>;
  readonly zone: string;
  readonly keys: Keys;
  readonly poolTokenFile: string;
  readonly now: () => number;
  /** Told which keys were given, for the record. */
  readonly onReleased?: (kids: readonly string[]) => void;
  readonly fetch?: typeof fetch;
}

export function createZoneKeyring(options: ZoneKeyringOptions): ZoneKeyring {
  const { release, zone } = options;
  let held: HeldZoneKeys | undefined;
  let pending: Promise<Result<HeldZoneKeys>> | undefined;

  /** Read at each use: keys are renewed by putting a new one first. */
  const expected = (): readonly ZoneKey[] => zoneKeys.parse(readJson(release.zoneKeysFile))[zone] ?? [];
  const find = (kid: string) => expected().find((key) => key.kid === kid);

  async function fetchKeys(): Promise<Result<HeldZoneKeys>> {
    const released = await requestKeys(options, expected());
    if (released.ok) {
      held = released.value;
      options.onReleased?.([...held.keys()]);
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

async function requestKeys(
  { release, zone, keys, poolTokenFile, now, fetch: send = fetch }: ZoneKeyringOptions,
  expected: readonly ZoneKey[],
): Promise<Result<HeldZoneKeys>> {
  const { token: attestation } = keys.current();
  const proof = await keys.sign(describeRelease(zone, attestation, now()), RELEASE_TYPE);
  const request = { attestation, proof };
  let answer: { status: number; body: unknown };
  try {
    const response = await send(new URL('/v1/release', release.url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${readPoolToken(poolTokenFile)}`,
      },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(ATTESTATION_MS),
    });
    answer = { status: response.status, body: await response.json() };
  } catch {
    return no(refuse('uploads_unavailable', undefined, 'the release authority cannot be reached'));
  }
  if (answer.status !== 200) return no(readRefusal(answer.body));
  const parsed = releaseAnswer.safeParse(answer.body);
  if (!parsed.success) return no(refuse('uploads_unavailable', undefined, 'the release authority answers otherwise'));
  return openRelease(parsed.data, request, expected, (box, binding) => keys.unwrap(sha256(attestation), box, binding));
}

/** Why not, in the authority's words; a reason that we do not know is one that may pass. */
function readRefusal(body: unknown) {
  const code = (body as { error?: { code?: unknown } } | null)?.error?.code;
  return refuse(isReason(code) ? code : 'uploads_unavailable', undefined, 'the release authority refused');
}
