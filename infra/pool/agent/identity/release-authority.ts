import { isReason, refuse } from '../../../../shared/refusal.ts';
import { no } from '../../../../shared/result.ts';
import { describeRelease, openRelease, RELEASE_TYPE, releaseAnswer } from '../../../../shared/seal/zone-key-release.ts';
import { ATTESTATION_MS } from './attest.ts';
import { type Keys, sha256 } from './keys.ts';
import type { RequestZoneKeys } from './zone-key.ts';

export interface AuthorityOptions {
  readonly url: string;
  readonly zone: string;
  readonly keys: Keys;
  /** Reads the pool token. */
  readonly token: () => string;
  readonly now: () => number;
  readonly fetch?: typeof fetch;
}

/** Returns what requests zone keys of an authority by `POST /v1/release` (shared/seal/PROTOCOL.md §11). */
export function requestFromAuthority(options: AuthorityOptions): RequestZoneKeys {
  const { url, zone, keys, token, now, fetch: send = fetch } = options;
  return async (expected) => {
    const { token: attestation } = keys.current();
    const proof = await keys.sign(describeRelease(zone, attestation, now()), RELEASE_TYPE);
    const request = { attestation, proof };
    let answer: { status: number; body: unknown };
    try {
      const response = await send(new URL('/v1/release', url), {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token()}` },
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
    return openRelease(parsed.data, request, expected, (box, binding) =>
      keys.unwrap(sha256(attestation), box, binding),
    );
  };
}

/** Returns the refusal of the authority; an unknown reason may pass. */
function readRefusal(body: unknown) {
  const code = (body as { error?: { code?: unknown } } | null)?.error?.code;
  return refuse(isReason(code) ? code : 'uploads_unavailable', undefined, 'the release authority refused');
}
