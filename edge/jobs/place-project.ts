import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { pick } from '../../shared/pool/pick.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { readSnapshots } from '../pool/snapshot.ts';
import type { ProjectBody } from './ask-project.ts';
import { uploadZones } from './place-upload.ts';

/** AES-256-GCM. */
const SUITE = 0x0005;

export interface ProjectSite {
  readonly zone: string;
  /** A pool without accelerators serves this voice there: such pools get the jobs first (T5). */
  readonly light: boolean;
}

/**
 * Chooses the zone of a project: the requested one, or the first where an agent has the voice now. Work waits
 * for agents, so a momentary lack of them is no reason to refuse; an unknown voice is.
 */
export async function placeProject(
  { zone, model, language }: ProjectBody,
  claims: Claims,
  { settings, env, runtime, id }: RequestContext,
): Promise<Result<ProjectSite>> {
  const allowed = uploadZones(claims, { settings });
  const [first] = allowed;
  if (settings.backOffices.size === 0) return no(refuse('uploads_closed'));
  if (first === undefined) return no(refuse('residency_mismatch', undefined, 'no functions in the zones of the token'));
  if (zone !== undefined && !allowed.includes(zone)) return no(refuse('residency_mismatch'));
  const zones = zone === undefined ? allowed : [zone];
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const request = {
    tenant: claims.tenant,
    session: claims.subject ?? id,
    task: 'synthesize',
    model,
    language,
    allowed: claims.languages,
    zones,
    suite: SUITE,
    class: 'batch',
  } as const;
  const picked = pick(request, { snapshots, memory: new Map(), now: runtime.now(), random: () => 0 });
  if (!picked.ok && picked.refusal.reason !== 'no_pool') return picked;
  const site = (picked.ok ? picked.value[0]?.entry.description.zone : zones[0]) ?? first;
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
