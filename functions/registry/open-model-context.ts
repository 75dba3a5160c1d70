// Dependencies of the model endpoints.
import type { Settings } from '../settings.ts';
import { storageAccountOf } from '../store/account.ts';
import { openTable } from '../store/table-rows.ts';
import type { ModelContext } from './model-context.ts';
import { openReleaseEdge } from './publish-release.ts';
import { openOwnKey, ownSigner } from './sign-as-functions.ts';

const MODEL_TABLE = 'models';

/** Opens the context; `undefined` without MODEL_SIGNERS, since no revision could be registered then. */
export function openModelContext(
  settings: Settings,
  blobs: ModelContext['blobs'],
  { audit, isUnderLegalHold }: Pick<ModelContext, 'audit' | 'isUnderLegalHold'>,
): ModelContext | undefined {
  const { MODEL_SIGNERS, ZONES } = settings;
  if (!MODEL_SIGNERS) return undefined;
  const ownKey = openOwnKey(settings);
  return {
    rows: openTable(storageAccountOf(settings), MODEL_TABLE),
    blobs,
    signers: ownKey ? [...MODEL_SIGNERS, ownSigner(ownKey)] : MODEL_SIGNERS,
    ownKey,
    zone: ZONES[0] as string,
    audit,
    isUnderLegalHold,
    edge: openReleaseEdge(settings),
    mirrorShare: settings.MIRROR_SHARE,
    settings,
    log: (line) => console.error(JSON.stringify(line)),
    now: () => Date.now(),
  };
}
