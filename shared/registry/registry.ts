// State of one model: its revisions, their stages and its aliases; and the names of the fleet, which have a log
// of the same kind. It derives from the log alone, entry by entry; the state at any time is the fold of the entries until then.
import { z } from 'zod';
import { canonicalJson } from '../audit/canonical-json.ts';
import { ascii } from '../bytes.ts';
import { toHex } from '../hex.ts';
import { tenantName } from '../names.ts';
import { sha256 } from '../sha256.ts';
import { keyOfName, NAMES_LOG, namedModel, requestedModel } from './names.ts';
import { modelName, revisionDigest } from './revision.ts';
import { isAwaited, made, type Rollout, rollout, rolloutEntry, sourceOf } from './rollout.ts';
import { sla } from './sla.ts';
import { FIRST, isSame, standing } from './stage.ts';

/** Alias of requests that name only the model. */
export const STABLE = 'stable';

export const aliasName = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/);

const place = {
  /** Counts from 1 without a gap. */
  seq: z.number().int().positive(),
  /** Milliseconds since 1970; never before the preceding entry. */
  at: z.number().int().nonnegative(),
  model: modelName.or(z.literal(NAMES_LOG)),
  /** SHA-256 of the entry before (RFC 8785), in hex; absent in the first. */
  before: z.string().optional(),
};

export const entry = z.discriminatedUnion('type', [
  z.object({
    ...place,
    type: z.literal('revision'),
    revision: revisionDigest,
    author: z.string(),
    sla: sla.optional(),
    made: made.optional(),
  }),
  z.object({
    ...place,
    type: z.literal('stage'),
    revision: revisionDigest,
    from: standing,
    to: standing,
    /** Id of the signed statement, and its signers. */
    statement: z.string(),
    signers: z.array(z.string()),
  }),
  z.object({
    ...place,
    type: z.literal('alias'),
    alias: aliasName,
    /** Absent: the alias named no revision before, or names none now. */
    from: revisionDigest.optional(),
    revision: revisionDigest.optional(),
    reason: z.string().optional(),
  }),
  z.object({
    ...place,
    type: z.literal('name'),
    name: requestedModel,
    /** Absent for a name of the whole fleet. */
    tenant: tenantName.optional(),
    /** Absent: the name had no model before, or has none now. */
    from: modelName.optional(),
    to: modelName.optional(),
    reason: z.string().optional(),
  }),
  z.object({ ...place, ...rolloutEntry }),
]);
export type Entry = z.infer<typeof entry>;
/** An entry without its position in the log. */
export type EntryDraft = Entry extends infer One
  ? One extends Entry
    ? Omit<One, 'seq' | 'at' | 'model' | 'before'>
    : never
  : never;

export const registry = z.object({
  model: modelName.or(z.literal(NAMES_LOG)),
  seq: z.number().int().nonnegative(),
  at: z.number().int().nonnegative(),
  /** Digest of the last entry. */
  last: z.string().optional(),
  revisions: z.record(
    z.string(),
    z.object({
      author: z.string(),
      /** Further authors who signed the same files. */
      authors: z.array(z.string()).optional(),
      registered: z.number().int(),
      standing,
      since: z.number().int(),
      sla: sla.optional(),
      made: made.omit({ parameters: true }).optional(),
      rollout: rollout.optional(),
    }),
  ),
  aliases: z.record(
    z.string(),
    z.object({
      revision: revisionDigest,
      since: z.number().int(),
      /** Former revision: the target of a rollback. */
      before: revisionDigest.optional(),
    }),
  ),
  /** Names of the fleet by `keyOfName`, in their log. */
  names: z.record(z.string(), namedModel).optional(),
});
export type Registry = z.infer<typeof registry>;

export const newRegistry = (model: string): Registry => ({ model, seq: 0, at: 0, revisions: {}, aliases: {} });

const digestOfEntry = (one: Entry): string => toHex(sha256(ascii(canonicalJson(one))));

/** Appends the draft: gives it number, time and the digest of the last entry. */
export const placeEntry = (known: Registry, draft: EntryDraft, now: number): Entry =>
  ({
    ...draft,
    model: known.model,
    seq: known.seq + 1,
    at: Math.max(now, known.at),
    ...(known.last !== undefined && { before: known.last }),
  }) as Entry;

/** Applies the next entry. Throws for any other one: a log has no gap. */
export function applyEntry(known: Registry, one: Entry): Registry {
  if (one.seq !== known.seq + 1 || one.before !== known.last) {
    throw new Error(`the entry ${one.seq} of ${known.model} does not follow ${known.seq}`);
  }
  const next = { ...known, seq: one.seq, at: one.at, last: digestOfEntry(one) };
  if (one.type === 'revision') return { ...next, revisions: withNew(known.revisions, one) };
  if (one.type === 'stage') return { ...next, revisions: withMoved(known.revisions, one) };
  if (one.type === 'rollout') return { ...next, revisions: withRollout(known.revisions, one) };
  if (one.type === 'name') return { ...next, names: withName(known.names, one) };
  const { [one.alias]: _, ...others } = known.aliases;
  if (one.revision === undefined) return { ...next, aliases: others };
  const named = { revision: one.revision, since: one.at, ...(one.from !== undefined && { before: one.from }) };
  return { ...next, aliases: { ...others, [one.alias]: named } };
}

type Revisions = Registry['revisions'];
type EntryOf<Type extends Entry['type']> = Extract<Entry, { type: Type }>;

function withName(names: Registry['names'] = {}, { name, tenant, to, at }: EntryOf<'name'>): Registry['names'] {
  const key = keyOfName(name, tenant);
  const { [key]: _, ...others } = names;
  if (to === undefined) return others;
  return { ...others, [key]: { name, ...(tenant !== undefined && { tenant }), model: to, since: at } };
}

const change = (revisions: Revisions, revision: string, to: Partial<Revisions[string]>): Revisions => ({
  ...revisions,
  [revision]: { ...(revisions[revision] as Revisions[string]), ...to },
});

/** Returns all authors of a revision and of its sources; none of them counts as an independent reviewer. */
export function authorsOf(revisions: Revisions, revision: string): string[] {
  const found = revisions[revision];
  if (!found) return [];
  const { author, authors = [], made: lineage } = found;
  return [author, ...authors, ...(lineage ? authorsOf(revisions, lineage.from) : [])];
}

function withNew(revisions: Revisions, { revision, author, at, sla: promised, made: lineage }: EntryOf<'revision'>) {
  const known = revisions[revision];
  if (known) {
    const authors = [...(known.authors ?? []), author];
    return change(revisions, revision, { authors, ...(promised && { sla: promised }) });
  }
  const from = lineage && { from: lineage.from, method: lineage.method };
  const row = {
    ...{ author, registered: at, standing: FIRST, since: at },
    ...(promised && { sla: promised }),
    ...(from && { made: from }),
  };
  const all = { ...revisions, [revision]: row };
  const source = from && isAwaited(revisions, from) ? revisions[from.from]?.rollout : undefined;
  if (!from || !source) return all;
  const tried = { ...source.tried, [from.method]: revision };
  return change(all, from.from, { rollout: { ...source, state: 'trying', since: at, tried } });
}

/** Applies a stage move. A move to the same stage means that a person has taken over a rollout. */
function withMoved(revisions: Revisions, { revision, from, to, at }: EntryOf<'stage'>): Revisions {
  const moved = change(revisions, revision, { standing: to, since: at });
  const source = sourceOf(revisions, revision);
  const known = revisions[source]?.rollout;
  const state = isSame(from, to) ? 'resumed' : to.stage === 'full' && source !== revision ? 'met' : undefined;
  return known && state ? change(moved, source, { rollout: { ...known, state, since: at } }) : moved;
}

/**
 * Applies a rollout entry. The failed revision returns to the first stage, which voids its signed evidence.
 */
function withRollout(revisions: Revisions, one: EntryOf<'rollout'>): Revisions {
  const { revision, failed, state, method, reason, at } = one;
  const before = revisions[revision]?.rollout;
  const last = before?.method;
  const tried: Rollout['tried'] = {
    ...before?.tried,
    ...(before?.state === 'making' && last !== undefined && { [last]: null }),
  };
  const known: Rollout = { state, since: at, reason, tried, ...((method ?? last) ? { method: method ?? last } : {}) };
  const moved = change(revisions, revision, { rollout: known });
  return failed === undefined ? moved : change(moved, failed, { standing: FIRST, since: at });
}
