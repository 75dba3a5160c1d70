import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { placeWork } from './place-work.ts';
import type { ProjectBody } from './project-body.ts';

export interface ProjectSite {
  readonly zone: string;
  /** A pool without accelerators serves this voice there: such pools get the jobs first (T5). */
  readonly light: boolean;
}

/** Chooses the zone of a project as `placeWork` does, and reports whether a light pool has the voice there. */
export async function placeProject(
  { zone, model, language }: ProjectBody,
  claims: Claims,
  context: RequestContext,
): Promise<Result<ProjectSite>> {
  const placed = await placeWork({ task: 'synthesize', model, language, zone }, claims, context);
  if (!placed.ok) return placed;
  const { zone: site, snapshots } = placed.value;
  return ok({ zone: site, light: hasLight(snapshots, site, model) });
}

const hasLight = (snapshots: readonly Snapshot[], zone: string, model: string): boolean =>
  snapshots
    .filter((one) => one.zone === zone)
    .some(({ entries }) =>
      entries.some(
        ({ description: { accelerator, models } }) =>
          accelerator === 'cpu' && models.some(({ name }) => name === model),
      ),
    );
