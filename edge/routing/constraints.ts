import type { RosterEntry, Snapshot } from '../../shared/pool/heartbeat.ts';
import { allowsModel, servesLanguage } from '../../shared/pool/language.ts';
import { SNAPSHOT_STALE_MS } from '../../shared/pool/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { type ModelRelease, newestRelease, partOf } from '../../shared/registry/release.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { healthOf, takesWork } from './agent-health.ts';
import type { Candidate, RouteRequest } from './route.ts';

/** Models that a refusal suggests for an unknown one: it is a sentence, and /v1/models is the list. */
const NAMED_MODELS_MAX = 8;
/** Kinds of request whose candidates are cached until the next snapshot: model, language, zones and suite. */
const CACHED_ROUTES_MAX = 256;

/** Returns the refusal of a request that no agent can serve; `undefined` when one can, or may in a moment. */
export function refusalAhead(request: RouteRequest, snapshots: readonly Snapshot[], now: number): Refusal | undefined {
  const able = candidatesFor(request, snapshots, now);
  return able.ok || able.refusal.reason === 'no_pool' ? undefined : able.refusal;
}

interface Known {
  readonly snapshots: readonly Snapshot[];
  readonly stale: number;
  readonly candidates: Result<readonly Candidate[]>;
}

/** Candidates by request, of the last snapshots only. */
const known = new Map<string, Known>();

/**
 * Cache key of the candidates of a request, which a busy caller repeats. Every field that `constrain` reads belongs
 * here, or candidates of one request would serve another.
 */
function nameOf(request: RouteRequest): string {
  const { task, model, language, detects, live, allowed, zones, suite } = request;
  const { of } = last;
  const same = of?.model === model && of.language === language && of.allowed === allowed && of.zones === zones;
  const sameKind = same && of.task === task && of.live === live && of.detects === detects;
  if (sameKind && of.suite === suite) return last.name;
  const name = `${task} ${model} ${language} ${detects} ${live} ${suite} ${allowed?.join()} ${zones.join()}`;
  last = { of: request, name };
  return name;
}

let last: { readonly of: RouteRequest | undefined; readonly name: string } = { of: undefined, name: '' };

/**
 * Returns the revisions at agents that satisfy the hard constraints, whatever their part and tier. Between two
 * snapshots equal requests have equal candidates, which are cached.
 */
export function candidatesFor(
  request: RouteRequest,
  snapshots: readonly Snapshot[],
  now: number,
): Result<readonly Candidate[]> {
  if (request.exclude) return constrain(request, snapshots, now);
  const name = nameOf(request);
  // A bit for each snapshot: whether it is stale.
  let stale = 0;
  for (const { at } of snapshots) stale = 2 * stale + (now - at <= SNAPSHOT_STALE_MS ? 0 : 1);
  const before = known.get(name);
  const same = before?.stale === stale && before.snapshots.length === snapshots.length;
  if (same && before.snapshots.every((one, at) => one === snapshots[at])) return before.candidates;
  const candidates = constrain(request, snapshots, now);
  if (known.size >= CACHED_ROUTES_MAX) known.clear();
  known.set(name, { snapshots, stale, candidates });
  return candidates;
}

/** Applies one constraint after the other, so that an empty set says which one emptied it. */
function constrain(request: RouteRequest, snapshots: readonly Snapshot[], now: number): Result<Candidate[]> {
  const { model, language, allowed = ['*'] } = request;
  const release = newestRelease(snapshots.map((snapshot) => snapshot.release))?.models[model];
  const known = snapshots.flatMap((snapshot) => candidatesOf(request, snapshot, release, now));
  if (known.length === 0) {
    // A silent agent is still listed for a while. An empty list says nothing about models.
    const anybody = snapshots.some((snapshot) => snapshot.entries.length > 0);
    if (!anybody) return no(refuse('no_pool', undefined, 'no agent is listed'));
    const named = release && snapshots.some(({ entries }) => entries.some((entry) => serves(entry, request.model)));
    if (named) return no(refuse('no_pool', undefined, 'no agent serves the released revision'));
    const task = otherTask(request, snapshots);
    if (task) return no(refuse('model_unfit', { model, task, ...others(request, snapshots) }));
    return no(refuse('model_unknown', { model, ...others(request, snapshots) }));
  }
  const hearing = request.live ? known.filter((candidate) => candidate.model.live) : known;
  if (hearing.length === 0) return no(refuse('model_not_live', { model, ...others(request, snapshots) }));
  const resident = hearing.filter(({ zone }) => request.zones.includes(zone));
  if (resident.length === 0) {
    // A zone with an empty list is down: it may serve the model, so "never" would be wrong.
    const down = snapshots.some(({ zone, entries }) => request.zones.includes(zone) && entries.length === 0);
    if (down) return no(refuse('no_pool', undefined, 'a zone of the tenant lists no agent'));
    return no(refuse('residency_mismatch', undefined, 'served in other zones only'));
  }
  const speaking = resident.filter((candidate) => servesLanguage(candidate.model.languages, language));
  if (speaking.length === 0) return no(refuse('language_unknown', { model, language: language ?? 'auto' }));
  const permitted = speaking.filter((candidate) => allowsModel(allowed, candidate.model.languages, language));
  if (permitted.length === 0) {
    const languages = new Set(speaking.flatMap((candidate) => candidate.model.languages));
    return no(refuse('language_forbidden', { language: language ?? [...languages].join(', ') }));
  }
  const able = permitted.filter(
    (candidate) =>
      candidate.able &&
      (!request.detects || candidate.entry.description.models.some(({ detects }) => detects)) &&
      candidate.entry.description.suites.includes(request.suite) &&
      !request.exclude?.has(candidate.agent),
  );
  return able.length ? ok(able) : no(refuse('no_pool', undefined, `0 of ${permitted.length} can take the request`));
}

const serves = ({ description }: RosterEntry, name: string): boolean =>
  description.models.some((model) => model.name === name);

/**
 * Returns the task of a model that has another one: a voice does not transcribe. Only in the caller's own
 * zones.
 */
function otherTask({ task, model: name, zones }: RouteRequest, snapshots: readonly Snapshot[]): string | undefined {
  return snapshots
    .filter(({ zone }) => zones.includes(zone))
    .flatMap(({ entries }) => entries.flatMap(({ description }) => description.models))
    .find((model) => model.name === name && model.task !== task && model.stage === 'full')?.task;
}

/** Alternative models that the caller may use, in its own zones, and the fleet's names for them. */
function others({ task, live, zones }: RouteRequest, snapshots: readonly Snapshot[]): { models?: string } {
  const models = snapshots
    .filter(({ zone }) => zones.includes(zone))
    .flatMap(({ entries }) => entries.flatMap(({ description }) => description.models))
    .filter((model) => (model.task === task || task === 'infer') && model.stage === 'full' && (!live || model.live));
  const served = new Set(models.map(({ name }) => name));
  const { names: named = {} } = newestRelease(snapshots.map(({ release }) => release)) ?? {};
  const shared = Object.keys(named).filter((key) => !key.includes(' ') && served.has(named[key] ?? ''));
  const names = [...[...served].sort(), ...shared.sort()];
  const few = names.slice(0, NAMED_MODELS_MAX);
  const more = names.length > few.length ? ` and ${names.length - few.length} more` : '';
  return few.length > 0 ? { models: few.join(', ') + more } : {};
}

function candidatesOf(
  { task, model: name }: RouteRequest,
  snapshot: Snapshot,
  release: ModelRelease | undefined,
  now: number,
): Candidate[] {
  const share = release?.canary?.share ?? 0;
  const fresh = now - snapshot.at <= SNAPSHOT_STALE_MS;
  return snapshot.entries.flatMap((entry) => {
    const { agent, zone, models } = entry.description;
    // A roster speaks for its own zone only; an agent listed elsewhere is nowhere.
    if (zone !== snapshot.zone) return [];
    const able = fresh && takesWork(healthOf(entry, snapshot.at));
    return models
      .filter((model) => model.name === name && (model.task === task || task === 'infer'))
      .flatMap((model) => {
        const part = partOf(release, model);
        return part === undefined ? [] : [{ entry, model, agent, zone, able, part, share }];
      });
  });
}
