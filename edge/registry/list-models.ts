import { z } from 'zod';
import { type ModelDescription, modelDescription } from '../../shared/pool/description.ts';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { refuse } from '../../shared/refusal.ts';
import { nameOfKey } from '../../shared/registry/names.ts';
import { newestRelease } from '../../shared/registry/release.ts';
import { admit } from '../auth/admit.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { healthOf, takesWork } from '../routing/agent-health.ts';
import { modelNames } from '../routing/model-names.ts';
import { readSnapshots } from '../routing/snapshot.ts';

/** OpenAI's model object, and what choosing one for speech needs besides. */
export const listedModel = z.object({
  id: z.string(),
  object: z.literal('model'),
  /** Seconds since 1970. */
  created: z.number().int(),
  owned_by: z.string(),
  task: modelDescription.shape.task,
  languages: z.array(z.string()),
  hears: modelDescription.shape.hears.describe('Speech that it was trained on; absent when its author does not say.'),
  zones: z.array(z.string()),
  pools: z.array(z.string()),
  root: z.string().optional().describe('Model that serves requests for this name'),
  family: z.string().optional().describe('Family whose members differ in language'),
  members: z.array(z.string()).optional().describe('Models of this family: the language of a request decides'),
});
export type ListedModel = z.infer<typeof listedModel>;

/** `GET /v1/models`: what the caller could use right now, in its own zones. */
export async function listModels(request: Request, context: RequestContext): Promise<Response> {
  const models = await readModels(request, context);
  return models instanceof Response ? models : Response.json({ object: 'list', data: models });
}

/** Answer of `GET /healthz`. */
export const edgeHealth = z.object({
  status: z.literal('ok'),
  serving: z.boolean().describe('An agent of some zone serves a model to callers now.'),
});

/** `GET /healthz`: the edge is up, with or without a model. Costs each zone one lookup a second at most. */
export async function showHealth(_: Request, { settings, env, runtime }: RequestContext): Promise<Response> {
  const models = mergeModels(await readSnapshots(settings.zones, env.ROSTER, runtime));
  return Response.json({ status: 'ok', serving: models.length > 0 } satisfies z.infer<typeof edgeHealth>);
}

/** `GET /v1/models/{model}` */
export async function showModel(
  request: Request,
  context: RequestContext,
  { name: id }: PathParams,
): Promise<Response> {
  const models = await readModels(request, context);
  if (models instanceof Response) return models;
  const model = models.find((one) => one.id === id);
  return model ? Response.json(model) : refuseWith(refuse('model_unknown', { model: id.slice(0, 63) }));
}

async function readModels(request: Request, context: RequestContext): Promise<ListedModel[] | Response> {
  const claims = await admit(request, 'models', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings, env, runtime } = context;
  const zones = settings.zones.filter((zone) => claims.value.zones.includes(zone));
  const snapshots = await readSnapshots(zones, env.ROSTER, runtime);
  return withNames(listFamilies(snapshots), snapshots, claims.value.tenant);
}

/** Returns the models, and their families but for one that has the name of a model. */
export function listFamilies(snapshots: readonly Snapshot[]): ListedModel[] {
  const models = mergeModels(snapshots);
  const families = new Map<string, ListedModel>();
  for (const { family, hears, ...member } of models) {
    if (family === undefined || models.some(({ id }) => id === family)) continue;
    const known = families.get(family);
    families.set(family, {
      ...member,
      id: family,
      ...leastOf(known, hears),
      created: Math.min(known?.created ?? member.created, member.created),
      languages: join(known?.languages, member.languages),
      zones: join(known?.zones, member.zones),
      pools: join(known?.pools, member.pools),
      members: join(known?.members, [member.id]),
    });
  }
  return [...models, ...families.values()];
}

const join = (before: readonly string[] = [], more: readonly string[]) => [...new Set([...before, ...more])].sort();

/** Adds the tenant's names for served models, as models with the `root` that serves them. */
function withNames(models: ListedModel[], snapshots: readonly Snapshot[], tenant: string): ListedModel[] {
  const { names = {} } = newestRelease(snapshots.map(({ release }) => release)) ?? {};
  const resolve = modelNames(snapshots, tenant);
  const own = Object.keys(names).flatMap((key) => nameOfKey(key, tenant) ?? []);
  const named = [...new Set(own)].flatMap((id) => {
    const root = resolve(id);
    const found = root === id ? undefined : models.find((one) => one.id === root);
    return found && root !== undefined ? [{ ...found, id, root }] : [];
  });
  const shadowed = new Set(named.map(({ id }) => id));
  return [...models.filter(({ id }) => !shadowed.has(id)), ...named].sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** One line for each name, whatever number of agents serve it. */
export function mergeModels(snapshots: readonly Snapshot[]): ListedModel[] {
  const merged = new Map<string, ListedModel>();
  for (const { at, entries } of snapshots) {
    for (const { description, load, heard } of entries) {
      if (!takesWork(healthOf({ load, heard }, at))) continue;
      for (const model of description.models) {
        if (model.stage !== 'full' && model.stage !== 'canary') continue;
        merged.set(model.name, mergeModel(merged.get(model.name), model, description));
      }
    }
  }
  return [...merged.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
}

function leastOf(known: ListedModel | undefined, hears: ModelDescription['hears']): Pick<ListedModel, 'hears'> {
  const both = known ? [known.hears, hears] : [hears];
  if (both.includes('synthetic')) return { hears: 'synthetic' };
  return both.every((one) => one === 'people') ? { hears: 'people' } : {};
}

function mergeModel(
  known: ListedModel | undefined,
  { name, task, languages, loaded, hears, family }: ModelDescription,
  { zone, pool }: { zone: string; pool: string },
): ListedModel {
  return {
    id: name,
    object: 'model',
    created: Math.min(known?.created ?? loaded, loaded),
    owned_by: 'auricle',
    task,
    languages: join(known?.languages, languages),
    // Two agents may serve different revisions: people are promised only where all of them hear people.
    ...leastOf(known, hears),
    zones: join(known?.zones, [zone]),
    pools: join(known?.pools, [pool]),
    ...(family !== undefined && { family }),
  };
}
