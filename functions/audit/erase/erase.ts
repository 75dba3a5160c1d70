// Erases a subject: destroys its secrets and with them everything hidden about it in its tenant's leaves. No
// leaf changes, so every proof holds. Each step may be interrupted and repeated by another process: the plan
// is stored first, until the log has the outcome.
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { AUDIT_RACE_TRIES_MAX } from '../limits.ts';
import { subjectName } from '../sidecar/sidecar-names.ts';
import { leadNowhere, readPointer, readSecret, type SubjectPlace } from '../sidecar/sidecar-subject.ts';
import { type EraseContext, type Officer, officerOf } from './erase-context.ts';
import { decideErasure, type Verdict } from './erase-decide.ts';
import { saltedName } from './erase-name.ts';
import {
  type ErasureState,
  erasureName,
  erasuresPrefix,
  readErasure,
  type StoredErasure,
  tenantOfErasure,
  writeErasure,
} from './erase-state.ts';
import { isHeld } from './hold-state.ts';

/**
 * Erasures of one tenant in a zone that wait for a hold or a law, which may take years: one tenant must not
 * fill the list of others.
 */
export const ERASURES_PER_TENANT_MAX = 4_096;
/** Names of waiting erasures of a zone that one round lists: 14 calls of storage. */
const ERASURES_LISTED_MAX = 65_536;
/** Waiting erasures that one round reads, the next ones in the next round: a minute of reading. */
const ERASURES_PER_ROUND_MAX = 4_096;

export interface ErasureRequest extends Officer {
  readonly tenant: string;
  /** A commitment. */
  readonly subject: string;
  /** Short name of the rule that requires it. */
  readonly basis: string;
}

/** `nothing`: nothing is hidden about the subject, or not any more. */
export interface Erased {
  readonly outcome: 'done' | 'deferred' | 'nothing';
  /** The basis of the request, or of its deferral. */
  readonly basis: string;
  /** The basis of the first request; absent when there was nothing to erase. */
  readonly asked?: string;
  /** Time of the erasure, ms since 1970; unknown under a hold. */
  readonly until?: number;
  /** Names of the subject in the log, one for each of its numbers. */
  readonly erased: readonly string[];
  /** Number of indexed records. */
  readonly count: number;
}

/**
 * Erases a subject. A refusal means that the report to the log failed: the erasure continues, and may be
 * requested again.
 */
export function eraseSubject(context: EraseContext, { subject, ...request }: ErasureRequest): Promise<Result<Erased>> {
  return eraseSubjects(context, [subject], request);
}

/** Erases a subject that has several commitments. */
export async function eraseSubjects(
  context: EraseContext,
  subjects: readonly string[],
  request: Omit<ErasureRequest, 'subject'>,
): Promise<Result<Erased>> {
  const { tenant, basis } = request;
  const place = await context.keys.subjects(tenant);
  const ends: Erased[] = [];
  for (const subject of place ? subjects : []) {
    const detached = await detach(context, place as SubjectPlace, { ...request, subject });
    if (!detached.ok) return detached;
    const end = detached.value && (await proceed(context, place as SubjectPlace, detached.value));
    if (end?.ok === false) return end;
    if (end) ends.push(end.value);
  }
  if (ends.length > 0) return ok(joinEnds(ends));
  const reported = await context.report({
    type: 'erasure.exec',
    tenant,
    outcome: 'nothing',
    basis,
    ...officerOf(request),
  });
  return reported.ok ? ok({ outcome: 'nothing', basis, erased: [], count: 0 }) : reported;
}

/** Done when all are, and deferred for as long as the last. */
function joinEnds(ends: readonly Erased[]): Erased {
  const worst = ends.filter(({ outcome }) => outcome === 'deferred');
  const untils = worst.map(({ until }) => until ?? Number.POSITIVE_INFINITY);
  const last = worst.find(({ until }) => (until ?? Number.POSITIVE_INFINITY) === Math.max(...untils)) ?? ends[0];
  return {
    ...(last as Erased),
    erased: ends.flatMap(({ erased }) => erased),
    count: ends.reduce((sum, { count }) => sum + count, 0),
  };
}

/** Selects the erasures of this round: all, or a window that moves with the clock. */
export function turnOf<T>(all: readonly T[], most: number, now: number): readonly T[] {
  if (all.length <= most) return all;
  const turns = Math.ceil(all.length / most);
  const turn = Math.floor(now / ROUND_MS) % turns;
  return all.slice(turn * most, (turn + 1) * most);
}

/** Between two rounds of the timer (`triggers.ts`). */
const ROUND_MS = 300_000;

/** Goes on with what waits: for the timer. Returns how many were done. */
export async function settleErasures(context: EraseContext): Promise<number> {
  const { store, zone, keys, now } = context;
  const names = await store.list('sidecar', erasuresPrefix(zone), ERASURES_LISTED_MAX);
  let done = 0;
  for (const name of turnOf(names, ERASURES_PER_ROUND_MAX, now())) {
    try {
      const place = await keys.subjects(tenantOfErasure(name));
      const stored = place && (await readErasure(place, name));
      const went = place && stored && (await proceed(context, place, stored));
      if (went?.ok && went.value.outcome === 'done') done += 1;
    } catch (error) {
      context.failed(error);
    }
  }
  return done;
}

/** Erasures of a tenant that are not done yet. */
export async function listErasures({ store, zone, keys }: EraseContext, tenant: string): Promise<ErasureState[]> {
  const place = await keys.subjects(tenant);
  if (!place) return [];
  const names = await store.list('sidecar', erasuresPrefix(zone, tenant), ERASURES_PER_TENANT_MAX);
  const read = await Promise.all(names.map((name) => readErasure(place, name)));
  return read.flatMap((stored) => (stored ? [stored.state] : [])).sort((a, b) => a.at - b.at);
}

/** Writes down which of the subject's numbers are meant; the next record of it gets another. */
async function detach(
  context: EraseContext,
  place: SubjectPlace,
  request: ErasureRequest,
): Promise<Result<StoredErasure | undefined>> {
  const { store, zone, now } = context;
  const { tenant, subject } = request;
  const name = erasureName(zone, tenant, await place.key.tag(subject));
  for (let tries = 0; tries < AUDIT_RACE_TRIES_MAX; tries += 1) {
    const [pointer, stored] = [await readPointer(place, subject), await readErasure(place, name)];
    const { sid } = pointer;
    if (sid === undefined) return ok(stored);
    const secret = await readSecret(place, sid);
    if (secret && !stored?.state.parts.some((part) => part.sid === sid)) {
      const limit = ERASURES_PER_TENANT_MAX;
      const waiting = stored ? 0 : (await store.list('sidecar', erasuresPrefix(zone, tenant), limit)).length;
      if (waiting >= limit) return no(refuse('erasures_waiting', { limit }));
      const part = { sid, erased: await saltedName(secret, subject) };
      const fresh: ErasureState = { v: 1, ...request, at: now(), parts: [] };
      const { parts, ...rest } = stored?.state ?? fresh;
      await writeErasure(place, store, { name, state: { ...rest, parts: [...parts, part] } }, stored);
      // The stored state counts, whichever process wrote it.
      continue;
    }
    await leadNowhere(place, pointer);
  }
  throw new Error('a subject changes all the time');
}

async function proceed(context: EraseContext, place: SubjectPlace, stored: StoredErasure): Promise<Result<Erased>> {
  const { store, zone, now } = context;
  const { tenant, subject, parts } = stored.state;
  // The process that stored it may have been interrupted.
  const pointer = await readPointer(place, subject);
  if (parts.some(({ sid }) => sid === pointer.sid)) await leadNowhere(place, pointer);
  const secrets = await Promise.all(parts.map(({ sid }) => readSecret(place, sid)));
  const used = secrets.flatMap((secret) => (secret ? [secret.used] : []));
  const tag = await place.key.tag(subject);
  const verdict = decideErasure({ held: await isHeld(store, zone, tenant, tag), used }, now());
  // Only the report of destroyed secrets is left.
  if (used.length === 0) return destroy(context, place, stored);
  if (!verdict.due) return defer(context, place, stored, verdict);
  const marked = await mark(context, place, stored);
  if (!marked) return over(stored);
  // A hold set after this read finds the mark, and is confirmed only when this erasure is over.
  const held = await isHeld(store, zone, tenant, tag);
  return held ? defer(context, place, marked, { due: false, basis: 'hold' }) : destroy(context, place, marked);
}

/** `undefined` when the erasure is over. */
async function mark(
  { store }: EraseContext,
  place: SubjectPlace,
  before: StoredErasure,
): Promise<StoredErasure | undefined> {
  let stored: StoredErasure | undefined = before;
  for (let tries = 0; stored && !stored.state.destroying; tries += 1) {
    if (tries >= AUDIT_RACE_TRIES_MAX) throw new Error('an erasure changes all the time');
    await writeErasure(place, store, { name: stored.name, state: { ...stored.state, destroying: true } }, stored);
    stored = await readErasure(place, stored.name);
  }
  return stored;
}

/** Another process has finished. */
const over = ({ state: { basis, parts } }: StoredErasure): Result<Erased> =>
  ok({ outcome: 'done', basis, asked: basis, erased: parts.map((part) => part.erased), count: 0 });

async function defer(
  { store, report }: EraseContext,
  place: SubjectPlace,
  stored: StoredErasure,
  { basis, until }: Extract<Verdict, { due: false }>,
): Promise<Result<Erased>> {
  const { destroying, ...state } = stored.state;
  const { tenant, parts, deferred } = state;
  const facts = { basis, ...(until !== undefined && { until }) };
  const erased = parts.map((part) => part.erased);
  if (deferred?.basis !== basis || deferred.until !== until) {
    const [first = ''] = erased;
    const officer = officerOf(stored.state);
    const reported = await report({
      ...{ type: 'erasure.exec', tenant, outcome: 'deferred', erased: first, basis: stored.state.basis, waits: basis },
      ...{ ...(until !== undefined && { until }), ...officer },
    });
    if (!reported.ok) return reported;
  } else if (!destroying) return ok({ outcome: 'deferred', ...facts, asked: state.basis, erased, count: 0 });
  // A failure here repeats the report.
  await writeErasure(place, store, { name: stored.name, state: { ...state, deferred: facts } }, stored);
  return ok({ outcome: 'deferred', ...facts, asked: stored.state.basis, erased, count: 0 });
}

async function destroy(context: EraseContext, place: SubjectPlace, stored: StoredErasure): Promise<Result<Erased>> {
  const { store, zone, keys, index, report } = context;
  const { tenant, basis } = stored.state;
  const counted = await writeCounts(context, place, stored);
  if (!counted) return over(stored);
  const { parts } = counted.state;
  for (const { sid } of parts) {
    await store.remove('sidecar', subjectName(zone, tenant, sid));
    await index.forget(tenant, sid);
  }
  keys.forget();
  await context.withdrawExports(tenant);
  for (const { erased, count } of parts) {
    const facts = { tenant, outcome: 'done' as const, basis, erased, ...(count !== undefined && { count }) };
    const reported = await report({ type: 'erasure.exec', ...facts, ...officerOf(counted.state) });
    if (!reported.ok) return reported;
  }
  await store.remove('sidecar', stored.name);
  const count = parts.reduce((sum, part) => sum + (part.count ?? 0), 0);
  return ok({ outcome: 'done', basis, asked: basis, erased: parts.map((part) => part.erased), count });
}

/**
 * Returns the number of indexed records, stored before the index forgets them; `undefined` when the erasure
 * is over.
 */
async function writeCounts(
  { store, index }: EraseContext,
  place: SubjectPlace,
  before: StoredErasure,
): Promise<StoredErasure | undefined> {
  let stored: StoredErasure | undefined = before;
  for (let tries = 0; stored; tries += 1) {
    if (tries >= AUDIT_RACE_TRIES_MAX) throw new Error('an erasure changes all the time');
    const { state }: StoredErasure = stored;
    if (state.parts.every(({ count }) => count !== undefined)) return stored;
    const parts = await Promise.all(
      state.parts.map(async (part) => ({ ...part, count: part.count ?? (await index.count(state.tenant, part.sid)) })),
    );
    await writeErasure(place, store, { name: stored.name, state: { ...state, parts } }, stored);
    stored = await readErasure(place, stored.name);
  }
  return undefined;
}
