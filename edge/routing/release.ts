import { compactVerify, createLocalJWKSet } from 'jose';
import { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import {
  RELEASE_BYTES,
  RELEASE_TYPE,
  type ReleaseMap,
  releaseMap,
  sentRelease,
} from '../../shared/registry/release.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { admit } from '../auth/admit.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import type { Settings } from '../settings.ts';
import { readSnapshots, refreshSnapshots, SNAPSHOT_WAIT_MS } from './snapshot.ts';

export const publishedRelease = z.object({
  generation: z.number().int().describe('The newest generation that every roster has'),
});

/**
 * `PUT /v1/release`, by the functions: the release map. Its signature authenticates it; a roster stores the
 * newest generation, so that an older map changes nothing. Later requests to this isolate follow the map.
 */
export async function takeRelease(request: Request, context: RequestContext): Promise<Response> {
  const { settings, env, runtime, recorder, id } = context;
  const json = await readJson(request, context, RELEASE_BYTES);
  if (!json.ok) return refuseWith(json.refusal);
  const sent = sentRelease.safeParse(json.value);
  if (!sent.success) return refuseWith(refuse('field_invalid', { field: 'release', rule: 'it is not as agreed' }));
  const map = await openRelease(sent.data.release, settings);
  if (!map.ok) return refuseWith(recorder.denyUnknown(id, 'release', map.refusal));
  const published = Promise.all(
    settings.zones.map((zone) => env.ROSTER.getByName(zone).release(map.value, sent.data.release)),
  );
  let generations: number[] | typeof late;
  try {
    generations = await within(published, SNAPSHOT_WAIT_MS, runtime);
  } catch {
    generations = late;
  }
  // A retry changes nothing in rosters that have the map.
  if (generations === late) return refuseWith(refuse('models_unavailable', undefined, 'a roster does not answer'));
  await refreshSnapshots(settings.zones, env.ROSTER, runtime);
  return Response.json({ generation: Math.min(...generations) } satisfies z.infer<typeof publishedRelease>);
}

export const knownReleases = z.object({
  zones: z.array(releaseMap.omit({ v: true }).extend({ zone: z.string() })),
});

/** `GET /v1/release`, by operators: the release map of each roster. */
export async function showRelease(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings, env, runtime } = context;
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const zones = snapshots.map(({ zone, release }) => ({
    zone,
    generation: release?.generation ?? 0,
    models: release?.models ?? {},
  }));
  const known: z.infer<typeof knownReleases> = { zones };
  return Response.json(known, { headers: { 'cache-control': 'no-store' } });
}

async function openRelease(signed: string, { serviceKeys }: Settings): Promise<Result<ReleaseMap>> {
  if (!serviceKeys) return no(refuse('token_invalid', undefined, 'no SERVICE_KEYS'));
  try {
    const { payload, protectedHeader } = await compactVerify(signed, createLocalJWKSet(serviceKeys), {
      algorithms: ['ES256'],
    });
    if (protectedHeader.typ !== RELEASE_TYPE) return no(refuse('token_invalid', undefined, 'typ'));
    return ok(releaseMap.parse(JSON.parse(new TextDecoder().decode(payload))));
  } catch {
    return no(refuse('token_invalid', undefined, 'the release is not signed, or not as agreed'));
  }
}
