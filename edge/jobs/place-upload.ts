import { pick } from '../../shared/pool/pick.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { readSnapshots } from '../pool/snapshot.ts';
import type { UploadBody } from './ask-upload.ts';

/** AES-256-GCM. */
const SUITE = 0x0005;

/** Returns the zones that may hold this tenant's uploads, in the order of its token. */
export function uploadZones(claims: Claims, { settings }: Pick<RequestContext, 'settings'>): string[] {
  return claims.zones.filter((zone) => settings.zones.includes(zone) && settings.backOffices.has(zone));
}

/**
 * Chooses the zone of an upload: the requested one, or the first where an agent serves the model now. Work
 * waits for agents, so a momentary lack of them is no reason to refuse; an unknown model is.
 */
export async function placeUpload(body: UploadBody, claims: Claims, context: RequestContext): Promise<Result<string>> {
  const allowed = uploadZones(claims, context);
  const [first] = allowed;
  if (context.settings.backOffices.size === 0) return no(refuse('uploads_closed'));
  if (first === undefined) return no(refuse('residency_mismatch', undefined, 'no functions in the zones of the token'));
  if (body.zone !== undefined && !allowed.includes(body.zone)) return no(refuse('residency_mismatch'));
  const zones = body.zone === undefined ? allowed : [body.zone];
  const { settings, env, runtime, id } = context;
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
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
  const picked = pick(request, { snapshots, memory: new Map(), now: runtime.now(), random: () => 0 });
  if (picked.ok) return ok(picked.value[0]?.entry.description.zone ?? first);
  return picked.refusal.reason === 'no_pool' ? ok(zones[0] ?? first) : picked;
}
