import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { newestRelease, partOf } from '../../shared/registry/release.ts';
import { ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { placeWork } from './place-work.ts';
import type { ProjectBody } from './project-body.ts';

export interface ProjectSite {
  readonly zone: string;
  /** Model of the requested name. */
  readonly model: string;
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
  const { zone: site, model: voice, snapshots } = placed.value;
  return ok({ zone: site, model: voice, light: hasLight(snapshots, site, voice) });
}

/** A revision on trial takes no jobs. */
function hasLight(snapshots: readonly Snapshot[], zone: string, model: string): boolean {
  const release = newestRelease(snapshots.map((one) => one.release))?.models[model];
  return snapshots
    .filter((one) => one.zone === zone)
    .flatMap(({ entries }) => entries)
    .filter(({ description }) => description.accelerator === 'cpu')
    .flatMap(({ description }) => description.models)
    .some((one) => one.name === model && ['full', 'older'].includes(partOf(release, one) ?? ''));
}
