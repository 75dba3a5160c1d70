// The largest release map that its schema takes, with names, digests and shares of maximum length.

import { keyOfName, NAMES_MAX } from '../../../shared/registry/names.ts';
import type { ReleaseMap } from '../../../shared/registry/release.ts';
import { GREY_REVISIONS_MAX, MODEL_NAMES_MAX } from '../../../shared/registry/release.ts';

const digest = `sha256:${'f'.repeat(64)}`;

export const largestMap = (generation: number): ReleaseMap => ({
  v: 1,
  generation,
  models: Object.fromEntries(
    Array.from({ length: MODEL_NAMES_MAX }, (_, at) => [
      String(at).padEnd(63, '-'),
      {
        ...{ stable: digest, before: digest, canary: { revision: digest, share: 0.25 as const } },
        grey: { revisions: Array<string>(GREY_REVISIONS_MAX).fill(digest), share: 2 ** -30 },
      },
    ]),
  ),
  names: Object.fromEntries(
    Array.from({ length: NAMES_MAX }, (_, at) => [
      keyOfName(String(at).padEnd(63, '-'), 't'.repeat(63)),
      'm'.repeat(63),
    ]),
  ),
});
