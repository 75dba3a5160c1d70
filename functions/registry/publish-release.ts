// Release map, derived from the logs of the models and sent to the edge. It is one row with a generation. The
// timer repeats the whole derivation, which recovers from a failure between log, map and edge.
import { CompactSign, importJWK } from 'jose';
import { z } from 'zod';
import { canonicalJson } from '../../shared/audit/canonical-json.ts';
import { refuse } from '../../shared/refusal.ts';
import type { modelNames } from '../../shared/registry/contract.ts';
import { NAMES_LOG } from '../../shared/registry/names.ts';
import type { Registry } from '../../shared/registry/registry.ts';
import {
  MODEL_NAMES_MAX,
  RELEASE_TYPE,
  type ReleaseMap,
  releaseMap,
  releaseOf,
} from '../../shared/registry/release.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Settings } from '../settings.ts';
import { MODEL_TRIES_MAX } from './limits.ts';
import type { ModelContext, ReleaseEdge } from './model-context.ts';
import { readModel } from './stored-model.ts';

/** Longest call that notifies the edge of a release: a rollback takes effect in five seconds. */
const RELEASE_NOTIFY_MS = 3_000;

/** Partition name that no model can have. */
const PARTITION = '@release';
const KEY = 'map';

/** Row of the map. Names stay in the row of their log: both together exceed a row. */
const storedMap = releaseMap.omit({ names: true }).extend({
  /** Last entry of the names' log that the generation contains. */
  named: z.number().int().default(0),
});
type StoredMap = z.infer<typeof storedMap>;
const EMPTY: StoredMap = { v: 1, generation: 0, models: {}, named: 0 };

type ReleaseContext = Pick<ModelContext, 'rows' | 'edge' | 'mirrorShare'>;

/** Lists a model before its log begins, so that every log is found. Refuses when the list is full. */
export async function enrolModel({ rows }: ReleaseContext, model: string): Promise<Result<undefined>> {
  for (let attempt = 0; attempt < MODEL_TRIES_MAX; attempt += 1) {
    const { map, version } = await readMap(rows);
    if (Object.hasOwn(map.models, model)) return ok(undefined);
    if (Object.keys(map.models).length >= MODEL_NAMES_MAX) {
      return no(refuse('gate_closed', { rule: `there are at most ${MODEL_NAMES_MAX} models` }));
    }
    if (await writeMap(rows, { ...map, models: { ...map.models, [model]: {} } }, version)) return ok(undefined);
  }
  return no(refuse('models_unavailable', undefined, 'the release map changes all the time'));
}

/** Returns the listed models and the revision of their `stable` alias. */
export async function listModels({
  rows,
}: Pick<ReleaseContext, 'rows'>): Promise<z.infer<typeof modelNames>['models']> {
  const { map } = await readMap(rows);
  return Object.keys(map.models)
    .sort()
    .map((model) => ({ model, ...(map.models[model]?.stable && { stable: map.models[model].stable }) }));
}

/**
 * Updates the map from the logs of one model or all, and sends it to the edge. Throws when the edge is
 * unreachable.
 */
export async function publishRelease(context: ReleaseContext, only?: string): Promise<ReleaseMap> {
  const map = await updateMap(context, only);
  if (map.generation > 0) await context.edge?.publish(map);
  return map;
}

async function updateMap({ rows, mirrorShare }: ReleaseContext, only: string | undefined): Promise<ReleaseMap> {
  for (let attempt = 0; attempt < MODEL_TRIES_MAX; attempt += 1) {
    const { map, version } = await readMap(rows);
    const { registry } = await readModel({ rows }, NAMES_LOG);
    const listed = Object.keys(map.models).filter((name) => only === undefined || name === only);
    const found = await Promise.all(
      listed.map(async (name) => [name, releaseOf((await readModel({ rows }, name)).registry, mirrorShare)]),
    );
    const models: ReleaseMap['models'] = { ...map.models, ...Object.fromEntries(found) };
    const changed = registry.seq > map.named || canonicalJson(models) !== canonicalJson(map.models);
    const next = changed ? { ...map, generation: map.generation + 1, models, named: registry.seq } : map;
    if (!changed || (await writeMap(rows, next, version))) return withNames(next, registry);
  }
  throw new Error('the release map changes all the time');
}

function withNames({ v, generation, models }: StoredMap, { names = {} }: Registry): ReleaseMap {
  const byName = Object.fromEntries(Object.entries(names).map(([key, { model }]) => [key, model]));
  return { v, generation, models, ...(Object.keys(byName).length > 0 && { names: byName }) };
}

async function readMap(rows: ReleaseContext['rows']): Promise<{ map: StoredMap; version: string | undefined }> {
  const row = await rows.read(PARTITION, KEY);
  return row ? { map: storedMap.parse(row.value), version: row.version } : { map: EMPTY, version: undefined };
}

const writeMap = (rows: ReleaseContext['rows'], value: StoredMap, version: string | undefined): Promise<boolean> =>
  rows.commit(PARTITION, [
    version === undefined ? { type: 'insert', key: KEY, value } : { type: 'replace', key: KEY, value, version },
  ]);

export function openReleaseEdge({
  EDGE_URL,
  SERVICE_KEY,
}: Pick<Settings, 'EDGE_URL' | 'SERVICE_KEY'>): ReleaseEdge | undefined {
  if (EDGE_URL === undefined || SERVICE_KEY === undefined) return undefined;
  const address = new URL('/v1/release', EDGE_URL);
  return {
    async publish(map) {
      const release = await new CompactSign(new TextEncoder().encode(JSON.stringify(map)))
        .setProtectedHeader({ alg: 'ES256', typ: RELEASE_TYPE, ...(SERVICE_KEY.kid && { kid: SERVICE_KEY.kid }) })
        .sign(await importJWK(SERVICE_KEY, 'ES256'));
      const response = await fetch(address, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ release }),
        signal: AbortSignal.timeout(RELEASE_NOTIFY_MS),
      });
      const answered = z.object({ generation: z.number() }).safeParse(await response.json().catch(() => undefined));
      if (!answered.success || answered.data.generation < map.generation) {
        throw new Error(`the edge answered ${response.status}`);
      }
    },
  };
}
