import type { ModelRelease } from '../../../../shared/registry/release.ts';
import type { Tier } from '../tier/state.ts';

/** A revision that the release map, or the mounted repository, has the agent serve. */
export interface Wanted {
  readonly model: string;
  readonly revision: string;
  /** `stable` serves callers, `trial` is a canary or grey revision, `former` the target of a roll-back. */
  readonly role: 'stable' | 'trial' | 'former';
}

/** Returns the revisions that a release names. A former revision that must not serve equals the stable one. */
export function releasedOf(models: Readonly<Record<string, ModelRelease>>): Wanted[] {
  return Object.entries(models).flatMap(([model, { stable, before, canary, grey }]): Wanted[] => [
    ...(stable === undefined ? [] : [{ model, revision: stable, role: 'stable' as const }]),
    ...(canary ? [{ model, revision: canary.revision, role: 'trial' as const }] : []),
    ...(grey?.revisions ?? []).map((revision) => ({ model, revision, role: 'trial' as const })),
    ...(before === undefined || before === stable ? [] : [{ model, revision: before, role: 'former' as const }]),
  ]);
}

export interface Mounted {
  readonly name: string;
  readonly revision: string;
  readonly stage: string;
}

/**
 * Returns the revisions of a mounted repository that serve by their own stage: of models without a released one. The
 * mounted revision stays the roll-back target until the release names one (`partOf`).
 */
export function mountedOf(mounted: readonly Mounted[], models: Readonly<Record<string, ModelRelease>>): Wanted[] {
  return mounted
    .filter(({ name, stage }) => models[name]?.before === undefined && stage !== 'retired')
    .flatMap(({ name: model, revision, stage }): Wanted[] => {
      if (models[model]?.stable === undefined)
        return [{ model, revision, role: stage === 'full' ? 'stable' : 'trial' }];
      return stage === 'full' ? [{ model, revision, role: 'former' }] : [];
    });
}

/** Returns the floor of a role. Stable revisions are pinned while all of them fit into the memory of the engine. */
export function floorOf(role: Wanted['role'], allFit: boolean): Tier | undefined {
  if (role === 'former') return 'ram';
  return role === 'stable' && allFit ? 'gpu' : undefined;
}
