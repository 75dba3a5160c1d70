import { type ModelDescription, tiers } from '../../shared/pool/description.ts';
import type { RosterEntry, Snapshot } from '../../shared/pool/heartbeat.ts';
import { allowsModel, servesLanguage } from '../../shared/pool/language.ts';
import { SNAPSHOT_STALE_MS } from '../../shared/pool/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { type ModelRelease, newestRelease, type Part, partOf } from '../../shared/registry/release.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { RequestClass } from '../../shared/tenant/claims.ts';
import { healthOf, takesWork } from './agent-health.ts';
import { cohortOf } from './cohort.ts';
import { costOf, isSaturated, streamCost, typicalMs } from './cost.ts';
import { type RouteMemory, withoutEjected } from './memory.ts';
import { inOrderOf } from './sticky.ts';

/** Attempts of a request: one retry on another pool; more multiplies an outage. */
export const ATTEMPTS_MAX = 2;
/** Difference below which two costs are equal: then slots decide, not the noise of the measurement. */
const COST_NOISE = 0.25;
/** Models that a refusal suggests for an unknown one: it is a sentence, and /v1/models is the list. */
const NAMED_MODELS_MAX = 8;
/** Kinds of request whose candidates are cached until the next snapshot: model, language, zones and suite. */
const CACHED_ROUTES_MAX = 256;

export interface RouteRequest {
  readonly tenant: string;
  /** Affinity key: requests of one session see one revision. */
  readonly session: string;
  /**
   * Requests of one tenant and model with the same key go to the same agent while it is there, whatever its load: the
   * next attempt then is the agent that had the key before the first one came.
   */
  readonly sticky?: string | undefined;
  readonly task: ModelDescription['task'];
  readonly model: string;
  /** BCP 47; absent or `auto` when only the audio decides. */
  readonly language?: string | undefined;
  /** Audio comes while it is spoken: only agents whose model serves live streams. */
  readonly live?: boolean | undefined;
  /** Languages the token allows; absent when any. */
  readonly allowed?: readonly string[] | undefined;
  /** Residency zones of the tenant. Nothing below ever widens them. */
  readonly zones: readonly string[];
  /** SFrame cipher suite the request is sealed with. */
  readonly suite: number;
  readonly class: RequestClass;
  /** A person waits for each word: fastest accelerators first (A9). Class `realtime` implies it. */
  readonly realtime?: boolean | undefined;
  /** Revision that the session began with; the session stays with it while an agent has its files. */
  readonly revision?: string | undefined;
  /** Agents that were tried. */
  readonly exclude?: ReadonlySet<string> | undefined;
  /** Share of sessions that see a revision in stage `canary`, 0 to 1; overrides the release map. */
  readonly canaryShare?: number | undefined;
}

export interface Attempt {
  readonly entry: RosterEntry;
  /** The revision that serves the request there. */
  readonly model: ModelDescription;
  /** For the audit record: how the choice was made, without content. */
  readonly why: string;
}

interface Candidate extends Omit<Attempt, 'why'> {
  readonly agent: string;
  readonly zone: string;
  /** The roster considered it able to take work when it made the snapshot. */
  readonly able: boolean;
  /** Part of its revision in the release, and the share of sessions that a canary gets. */
  readonly part: Part;
  readonly share: number;
}

export interface PickContext {
  readonly snapshots: readonly Snapshot[];
  readonly memory: RouteMemory;
  /** Epoch ms. */
  readonly now: number;
  /** Returns numbers from 0 up to 1; the same numbers give the same choice. */
  readonly random: () => number;
}

/**
 * Decides the route of a request: attempts in order with their reasons, or a refusal. Each attempt is one
 * revision at one agent. Hard constraints come first and hold for every attempt; then the cohort, then the
 * tier, then load. Refusals: `model_unknown`, `model_unfit`, `model_not_live`, `residency_mismatch`,
 * `language_unknown`, `language_forbidden`, `no_pool`.
 */
export function pick(request: RouteRequest, context: PickContext): Result<Attempt[]> {
  const { snapshots, memory, now } = context;
  const able = constrainKnown(request, snapshots, now);
  if (!able.ok) return able;
  const cohort = onePerAgent(inCohort(request, able.value));
  let rest = withoutEjected(cohort, memory, now);
  if (rest.length === 0) return no(refuse('no_pool', undefined, 'no agent serves the stable revision'));
  const [only] = rest;
  if (only && rest.length === 1 && request.sticky === undefined) {
    return ok([attemptAt(only, 'the only one of 1')]);
  }
  if (request.sticky !== undefined) return ok(chooseSticky(request, request.sticky, rest));
  const attempts: Attempt[] = [];
  while (rest.length > 0 && attempts.length < ATTEMPTS_MAX) {
    const pools = new Set(attempts.map(({ entry }) => entry.description.pool));
    const warm = warmest(rest);
    const elsewhere = warm.filter(({ entry }) => !pools.has(entry.description.pool));
    const preferred = fastestFirst(request, elsewhere.length ? elsewhere : warm, memory, now);
    const [choice, rule] = choose(request, preferred, context);
    attempts.push(attemptAt(choice, `${rule} of ${preferred.length}`));
    rest = rest.filter(({ agent }) => agent !== choice.agent);
  }
  return ok(attempts);
}

/** Returns the refusal of a request that no agent can serve; `undefined` when one can, or may in a moment. */
export function refusalAhead(request: RouteRequest, snapshots: readonly Snapshot[], now: number): Refusal | undefined {
  const able = constrainKnown(request, snapshots, now);
  return able.ok || able.refusal.reason === 'no_pool' ? undefined : able.refusal;
}

interface Known {
  readonly snapshots: readonly Snapshot[];
  readonly stale: number;
  readonly candidates: Result<Candidate[]>;
}

/** Candidates by request, of the last snapshots only. */
const known = new Map<string, Known>();

/**
 * Cache key of the candidates of a request, which a busy caller repeats. Every field that `constrain` reads belongs
 * here, or candidates of one request would serve another.
 */
function nameOf(request: RouteRequest): string {
  const { task, model, language, live, allowed, zones, suite } = request;
  const { of } = last;
  const same = of?.model === model && of.language === language && of.allowed === allowed && of.zones === zones;
  if (same && of.task === task && of.live === live && of.suite === suite) return last.name;
  const name = `${task} ${model} ${language} ${live} ${suite} ${allowed?.join()} ${zones.join()}`;
  last = { of: request, name };
  return name;
}

let last: { readonly of: RouteRequest | undefined; readonly name: string } = { of: undefined, name: '' };

/** Returns the revisions at agents that satisfy the hard constraints, whatever their part and tier. */
export const candidatesFor = (
  request: RouteRequest,
  snapshots: readonly Snapshot[],
  now: number,
): Result<readonly (Omit<Attempt, 'why'> & { readonly part: Part })[]> => constrainKnown(request, snapshots, now);

/** Caches `constrain`: between two snapshots equal requests have equal candidates. */
function constrainKnown(request: RouteRequest, snapshots: readonly Snapshot[], now: number): Result<Candidate[]> {
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

/** Step 1: one constraint after the other, so that an empty set says which one emptied it. */
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

/** Alternative models that the caller may use, in its own zones. */
function others({ task, live, zones }: RouteRequest, snapshots: readonly Snapshot[]): { models?: string } {
  const models = snapshots
    .filter(({ zone }) => zones.includes(zone))
    .flatMap(({ entries }) => entries.flatMap(({ description }) => description.models))
    .filter((model) => (model.task === task || task === 'infer') && model.stage === 'full' && (!live || model.live));
  const names = [...new Set(models.map(({ name }) => name))].sort();
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

/**
 * Step 2. A session stays with its own revision. A canary session falls back to the stable revision; a stable
 * session never meets a canary. The former stable revision serves until an agent has the new one loaded. An
 * agent loads a revision for a request only where no other revision that the session may get is loaded.
 */
function inCohort(
  { tenant, session, sticky = session, canaryShare, revision }: RouteRequest,
  able: readonly Candidate[],
): readonly Candidate[] {
  const own = able.filter(({ model, part }) => model.revision === revision && part !== 'grey' && model.tier !== 'blob');
  if (own.length > 0) return own;
  const share = canaryShare ?? able.find(({ part }) => part === 'canary')?.share ?? 0;
  const parts: readonly Part[] = ['canary', 'full', 'older'];
  const allowed = cohortOf(tenant, sticky, share) === 'canary' ? parts : parts.slice(1);
  const groups = allowed.map((part) => able.filter((candidate) => candidate.part === part));
  const ready = groups.find((group) => group.some(({ model }) => model.tier === undefined));
  return ready ?? groups.find((group) => group.length > 0) ?? [];
}

/** Returns how far a revision is from being served; 0 when it is loaded. */
const coldness = ({ model }: Candidate): number => (model.tier === undefined ? 0 : 1 + tiers.indexOf(model.tier));

/** Leaves one revision of each agent: the warmest, then the one that came last. */
function onePerAgent(cohort: readonly Candidate[]): readonly Candidate[] {
  const best = new Map<string, Candidate>();
  for (const candidate of cohort) {
    const known = best.get(candidate.agent);
    const colder = known ? coldness(candidate) - coldness(known) : -1;
    const isNewer = known !== undefined && candidate.model.loaded > known.model.loaded;
    if (colder < 0 || (colder === 0 && isNewer)) best.set(candidate.agent, candidate);
  }
  return [...best.values()];
}

/** Returns the candidates in the warmest tier that any of them has. */
function warmest(candidates: readonly Candidate[]): readonly Candidate[] {
  const least = Math.min(...candidates.map(coldness));
  return candidates.filter((candidate) => coldness(candidate) === least);
}

/** Explains a choice: the rule, the part of the revision unless it is `full`, and its tier unless it is loaded. */
function attemptAt({ entry, model, part }: Candidate, rule: string): Attempt {
  const why = [rule, part === 'full' ? '' : part, model.tier ? `in ${model.tier}` : ''].filter(Boolean).join(', ');
  return { entry, model, why };
}

/** Step 3 for requests with state in one agent: a rendezvous hash, GPUs first (A9), whatever the load. */
function chooseSticky({ tenant, model, ...request }: RouteRequest, key: string, rest: readonly Candidate[]): Attempt[] {
  const wantsFast = request.realtime || request.class === 'realtime';
  const warm = warmest(rest);
  const fast = warm.filter(({ entry }) => wantsFast && entry.description.accelerator === 'gpu');
  const members = (fast.length ? fast : warm).map((candidate) => ({
    ...candidate,
    slots: candidate.entry.description.slots,
  }));
  return inOrderOf(`${tenant}\n${model}\n${key}`, members)
    .slice(0, ATTEMPTS_MAX)
    .map((choice, at) => attemptAt(choice, `sticky, choice ${at + 1} of ${members.length}`));
}

/** A9: for realtime speech accelerators come first, until all of them are saturated. */
function fastestFirst(
  request: RouteRequest,
  candidates: readonly Candidate[],
  memory: RouteMemory,
  now: number,
): readonly Candidate[] {
  if (!request.realtime && request.class !== 'realtime') return candidates;
  const fast = candidates.filter(
    ({ entry }) => entry.description.accelerator === 'gpu' && !isSaturated(entry, request.class, memory, now),
  );
  return fast.length ? fast : candidates;
}

/**
 * Step 3: draws two candidates by their share of slots and takes the cheaper one. Taking the cheapest of all
 * would send every isolate to the same agent, since signals are a second old.
 */
function choose(
  request: RouteRequest,
  candidates: readonly Candidate[],
  { memory, now, random }: PickContext,
): [Candidate, string] {
  const first = draw(candidates, random());
  if (candidates.length === 1) return [first, 'the only one'];
  const second = draw(
    candidates.filter((candidate) => candidate !== first),
    random(),
  );
  const entries = candidates.map(({ entry }) => entry);
  const typical = typicalMs(entries, memory, now);
  const cost = ({ entry }: Candidate) =>
    request.live ? streamCost(entry, memory) : costOf(entry, request.class, { memory, now, typical });
  const [one, other] = [cost(first), cost(second)];
  if (Math.abs(one - other) <= Math.max(one, other) * COST_NOISE) return [first, 'by slots'];
  return one < other ? [first, 'less loaded'] : [second, 'less loaded'];
}

function draw(candidates: readonly Candidate[], random: number): Candidate {
  const total = candidates.reduce((sum, { entry }) => sum + entry.description.slots, 0);
  let at = random * total;
  const found = candidates.find(({ entry }) => {
    at -= entry.description.slots;
    return at < 0;
  });
  return (found ?? candidates.at(-1)) as Candidate;
}
