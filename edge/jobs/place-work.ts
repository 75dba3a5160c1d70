import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { candidatesFor } from '../routing/constraints.ts';
import { chooseMember, type Target } from '../routing/family.ts';
import { modelNames } from '../routing/model-names.ts';
import { revisionsFor } from '../routing/revisions.ts';
import { SUITE } from '../routing/setups.ts';
import { readSnapshots } from '../routing/snapshot.ts';

/** Returns the zones that may hold this tenant's uploads, in the order of its token. */
export function uploadZones(claims: Claims, { settings }: Pick<RequestContext, 'settings'>): string[] {
  return claims.zones.filter((zone) => settings.zones.includes(zone) && settings.functionsUrls.has(zone));
}

/** Work to place: its task and what its caller requested. */
export interface PlacedWork {
  readonly task: 'transcribe' | 'synthesize';
  readonly model: string;
  readonly language?: string | undefined;
  /** Tags of a list of the caller: the language is one of them. */
  readonly languages?: readonly string[] | undefined;
  /** Requested zone. */
  readonly zone?: string | undefined;
}

export interface Placed {
  readonly zone: string;
  /** Model of the requested name, or the family whose language is to be detected. */
  readonly model: string;
  /** Models of the family in the zone, and the languages among which an agent detects. */
  readonly detection?: Pick<Target, 'members' | 'languages'> | undefined;
  readonly snapshots: readonly Snapshot[];
}

/**
 * Chooses the zone of batch work: the requested one, or the first where an agent serves the model now. Work
 * waits for agents, so a momentary lack of them is no reason to refuse; an unknown model is.
 */
export async function placeWork(
  { task, model: requested, language, languages, zone }: PlacedWork,
  claims: Claims,
  { settings, env, runtime, id }: RequestContext,
): Promise<Result<Placed>> {
  const zones = uploadZones(claims, { settings });
  const first = zone ?? zones[0];
  if (settings.functionsUrls.size === 0) return no(refuse('uploads_closed'));
  if (zones.length === 0) return no(refuse('residency_mismatch', undefined, 'no functions in the zones of the token'));
  if (first === undefined || !zones.includes(first)) return no(refuse('residency_mismatch'));
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const name = modelNames(snapshots, claims.tenant)(requested) ?? requested;
  const workZones = zone === undefined ? zones : [zone];
  const now = runtime.now();
  const choose = (within: readonly string[]) =>
    chooseMember({ name, language, languages, allowed: claims.languages, zones: within }, snapshots, now);
  const target = choose(workZones);
  if (!target.ok) return target;
  const { model, family } = target.value;
  const request = {
    tenant: claims.tenant,
    session: claims.subject ?? id,
    task,
    model,
    language,
    allowed: claims.languages,
    zones: workZones,
    suite: SUITE,
    class: 'batch',
  } as const;
  const able = candidatesFor(request, snapshots, now);
  if (!able.ok && able.refusal.reason !== 'no_pool') return able;
  // The order of the token decides, not a cost: the audio stays in its zone.
  const serving = new Set((able.ok ? revisionsFor(request, able.value) : []).map((candidate) => candidate.zone));
  const placed = workZones.find((one) => serving.has(one)) ?? first;
  if (family === undefined) return ok({ zone: placed, model, snapshots });
  // The audio stays in its zone, whose members may be fewer.
  const local = choose([placed]);
  if (!local.ok) return local;
  const { members, languages: among } = local.value;
  if (members === undefined) return ok({ zone: placed, model: local.value.model, snapshots });
  return ok({ zone: placed, model: family, detection: { members, languages: among }, snapshots });
}
