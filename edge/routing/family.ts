import type { ModelDescription } from '../../shared/pool/description.ts';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { allowsModel, allowsSpoken, isOpen, servesLanguage } from '../../shared/pool/language.ts';
import { SNAPSHOT_STALE_MS } from '../../shared/pool/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { newestRelease, partOf } from '../../shared/registry/release.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { healthOf, takesWork } from './agent-health.ts';

/** Models for which a request is routed. */
export interface Target {
  readonly model: string;
  readonly language: string | undefined;
  /** Family whose member the detected language decides; an agent detects. Absent: `model` serves the request. */
  readonly family?: string | undefined;
  /** Languages of the family that the request or its token lists: an agent detects one of them. Absent: any. */
  readonly languages?: readonly string[] | undefined;
  /** With `family`: the model of each of its languages. */
  readonly members?: Readonly<Record<string, string>> | undefined;
}

export interface FamilyRequest {
  /** Family or model, after aliases were resolved. */
  readonly name: string;
  /** BCP 47; absent or `auto` when only the audio decides. */
  readonly language: string | undefined;
  /** Tags of a list of the caller: the language is one of them. */
  readonly languages?: readonly string[] | undefined;
  readonly live?: boolean | undefined;
  /** Languages the token allows. */
  readonly allowed: readonly string[];
  /** Residency zones of the request. */
  readonly zones: readonly string[];
}

interface Member {
  readonly model: ModelDescription;
  readonly zone: string;
  /** Its agent detects languages. */
  readonly detects: boolean;
  /** Last time at which the agent takes work, by its snapshot, epoch ms; absent: it takes none. */
  readonly ableUntil: number | undefined;
}

interface Index {
  readonly models: ReadonlySet<string>;
  readonly families: ReadonlyMap<string, readonly Member[]>;
}

/** Indexes of the snapshots that are in memory: each request reads one. */
const indexes = new WeakMap<Snapshot, Index>();

function indexOf(snapshot: Snapshot): Index {
  const known = indexes.get(snapshot);
  if (known) return known;
  const models = new Set<string>();
  const families = new Map<string, Member[]>();
  for (const entry of snapshot.entries) {
    const { description } = entry;
    const ableUntil = takesWork(healthOf(entry, snapshot.at)) ? snapshot.at + SNAPSHOT_STALE_MS : undefined;
    const detects = description.models.some((model) => model.detects);
    for (const model of description.models) {
      models.add(model.name);
      if (model.family === undefined || model.task !== 'transcribe') continue;
      const members = families.get(model.family) ?? [];
      members.push({ model, zone: description.zone, detects, ableUntil });
      families.set(model.family, members);
    }
  }
  const index = { models, families };
  indexes.set(snapshot, index);
  return index;
}

const languagesOf = (members: readonly Member[]): string[] =>
  [...new Set(members.flatMap(({ model }) => model.languages))].sort();

/**
 * Returns the member that is first by name, so that equal requests get the same model. Members whose agent takes work
 * at `now` precede the others. When none does, `pick` refuses the member with the reason.
 */
function firstOf(members: readonly Member[], now: number): string {
  const able = members.filter(({ ableUntil }) => ableUntil !== undefined && now <= ableUntil);
  return (able.length ? able : members).map(({ model }) => model.name).sort()[0] as string;
}

/**
 * Chooses the member of a family for the language of a request. A name that is no family stays as it is, and a model
 * precedes a family of its name. An agent detects an open language, among those of the caller's list and of the token,
 * unless the token allows one language only. A token of several is detected even when one of them is served: a member
 * must not take the speech of another silently. Refusals: `language_unknown`, `language_forbidden`, `language_needed`.
 * A family that is not served in the zones yields a member, which `pick` refuses with the reason.
 */
export function chooseMember(request: FamilyRequest, snapshots: readonly Snapshot[], now: number): Result<Target> {
  const { name, language, languages: choice = ['*'], live, allowed, zones } = request;
  const own = ok({ model: name, language });
  const known = snapshots.map(indexOf);
  if (known.some(({ models }) => models.has(name))) return own;
  const listed = known.flatMap(({ families }) => families.get(name) ?? []);
  if (listed.length === 0) return own;
  const releases = newestRelease(snapshots.map(({ release }) => release))?.models ?? {};
  const released = listed.filter(({ model }) => isServed(partOf(releases[model.name], model)));
  const local = released.filter(({ model, zone }) => zones.includes(zone) && (!live || model.live));
  if (local.length === 0) return ok({ model: firstOf(released.length ? released : listed, now), language });

  const serving = local.filter(
    ({ model }) => servesLanguage(model.languages, language) && isChosen(choice, model, language),
  );
  if (serving.length === 0) {
    if (!isOpen(language) && !allowsSpoken(allowed, language)) return no(refuse('language_forbidden', { language }));
    if (!isOpen(language) && !allowsSpoken(choice, language)) {
      const rule = `the speech is in "${language}", and the request is for ${choice.join(', ')}`;
      return no(refuse('language_needed', { rule }));
    }
    const languages = languagesOf(local).join(', ');
    const wanted = isOpen(language) ? choice.join(', ') : language;
    return no(refuse('language_unknown', { model: name, language: wanted, languages }));
  }
  if (!isOpen(language)) return ok({ model: firstOf(serving, now), language });
  const permitted = serving.filter(({ model }) => allowsModel(allowed, model.languages, undefined));
  const languages = languagesOf(permitted);
  if (permitted.length === 0) return no(refuse('language_forbidden', { language: languagesOf(serving).join(', ') }));
  const isNamed = languages.length === 1 && allowed.length === 1 && allowed[0] !== '*';
  const detecting = permitted.filter(({ detects }) => detects && !isNamed);
  if (detecting.length > 0) {
    const isFree = [choice, allowed].every((tags) => tags.includes('*'));
    const among = languagesOf(listed).filter((tag) => allowsSpoken(choice, tag) && allowsSpoken(allowed, tag));
    const restricted = isFree ? {} : { languages: among };
    const members = Object.fromEntries(
      languages.map((tag) => [
        tag,
        firstOf(
          permitted.filter(({ model }) => model.languages.includes(tag)),
          now,
        ),
      ]),
    );
    return ok({ model: firstOf(detecting, now), language: undefined, family: name, members, ...restricted });
  }
  if (languages.length === 1) return ok({ model: firstOf(permitted, now), language: undefined });
  const rule = `"${name}" has models for ${languages.join(', ')}, and no agent here detects languages`;
  return no(refuse('language_needed', { rule }));
}

/** Reports whether a model serves one of the languages `choice`, and the language that is known. */
const isChosen = (choice: readonly string[], { languages }: ModelDescription, language: string | undefined) =>
  isOpen(language) ? allowsModel(choice, languages, undefined) : allowsSpoken(choice, language);

const isServed = (part: ReturnType<typeof partOf>): boolean => part !== undefined && part !== 'grey';
