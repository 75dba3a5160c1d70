import { pick } from '../../shared/pool/pick.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { readSnapshots } from '../pool/snapshot.ts';
import type { UploadBody } from './ask.ts';

/** AES-256-GCM. */
const SUITE = 0x0005;

/** The zones where this tenant's uploads may lie, in the order of its token. */
export function uploadZones(claims: Claims, { settings }: Pick<RequestContext, 'settings'>): string[] {
  return claims.zones.filter((zone) => settings.zones.includes(zone) && settings.backOffices.has(zone));
}

/**
 * In which zone an upload is worked on: the one that was asked for, or the first where an agent serves the model now.
 * Work waits for agents, so none at the moment is no reason to refuse; a model that nobody has is.
 */
export async function placeUpload(body: UploadBody, claims: Claims, context: RequestContext): Promise<Result<string>> {
  const allowed = uploadZones(claims, context);
  const [first] = allowed;
  if (context.settings.backOffices.size === 0) return no(refuse('uploads_closed'));
  if (first === undefined) return no(refuse('residency_mismatch', undefined, 'no functions in the zones of the token'));
  if (body.zone !== undefined && !allowed.includes(body.zone)) return no(refuse('residency_mismatch'));
  const zones = body.zone === undefined ? allowed : [body.zone];
  const { settings, env, surroundings, id } = context;
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, surroundings);
  const request = {
    tenant: claims.tenant,
    session: claims.subject ?? id,
    task: 'transcribe',
    model: body.model,
    language: body.language,
    allowed: claims.languages,
    zones,
    suite: SUITE,
    class: 'batch',
  } as const;
  const picked = pick(request, snapshots, new Map(), surroundings.now(), () => 0);
  if (picked.ok) return ok(picked.value[0]?.entry.description.zone ?? first);
  return mayPass(picked.refusal) ? ok(zones[0] ?? first) : picked;
}

/** Who could do it is busy, or not there just now. */
const mayPass = ({ reason }: Refusal): boolean => reason === 'no_pool';
