// Sets and releases holds. A hold is stored before its report to the log and removed after that of its
// release, so an interruption holds too much, never too little. The next call or the timer sends missing
// reports.
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { AUDIT_RACE_TRIES_MAX } from '../limits.ts';
import type { SubjectPlace } from '../sidecar/sidecar-subject.ts';
import { ERASURES_PER_TENANT_MAX } from './erase.ts';
import { type EraseContext, type Officer, officerOf } from './erase-context.ts';
import { nameInLog } from './erase-name.ts';
import { erasureName, erasuresPrefix, readErasure } from './erase-state.ts';
import {
  endingName,
  type HoldState,
  holdName,
  holdsPrefix,
  readHold,
  type StoredHold,
  tenantOfHold,
} from './hold-state.ts';

/** Open legal holds of one tenant in a zone; each belongs to a case that a person works on. */
export const HOLDS_PER_TENANT_MAX = 256;
/** Legal holds of a zone that one round reads: HOLDS_PER_TENANT_MAX of 256 tenants. */
const HOLDS_LISTED_MAX = 65_536;

export interface HoldRequest extends Officer {
  /** Chosen by the requester: a repeated request sets one hold. */
  readonly id: string;
  readonly tenant: string;
  readonly subject?: string | undefined;
  /** Further commitments of the subject. */
  readonly also?: readonly string[] | undefined;
  readonly reason: string;
  readonly basis?: string | undefined;
}

/**
 * Sets a hold. A refusal means that the report to the log failed, not that nothing is held: request it again.
 */
export async function setHold(
  context: EraseContext,
  { tenant, also = [], ...request }: HoldRequest,
): Promise<Result<HoldState>> {
  const { store, zone, keys, now } = context;
  const place = (await keys.subjects(tenant, true)) as SubjectPlace;
  const limit = HOLDS_PER_TENANT_MAX;
  const there = await store.list('sidecar', holdsPrefix(zone, tenant), limit + 1);
  const tag = request.subject === undefined ? undefined : await place.key.tag(request.subject);
  const name = holdName(zone, tenant, tag, request.id);
  if (!there.includes(name) && there.length + also.length >= limit) return no(refuse('holds_most', { limit }));
  const fresh: HoldState = {
    ...{ v: 1, tenant, ...withoutMissing(request), at: now(), told: false },
    ...(also.length > 0 && { also: [...also] }),
  };
  await store.create('sidecar', name, await place.key.seal(fresh, name));
  const stored = await readHold(store, place.key, name);
  // Another call releases it now.
  return stored ? settle(context, place, stored) : no(refuse('hold_unknown'));
}

/** Ends a hold, once the log says so. Answers as `setHold` does. */
export async function releaseHold(
  context: EraseContext,
  tenant: string,
  id: string,
  request: Officer & { readonly reason: string },
): Promise<Result<HoldState>> {
  const { store, zone, keys, now } = context;
  const place = await keys.subjects(tenant);
  const there = place ? await store.list('sidecar', holdsPrefix(zone, tenant), HOLDS_PER_TENANT_MAX + 1) : [];
  let last: Result<HoldState> = no(refuse('hold_unknown'));
  if (!place) return last;
  for (const name of there.filter((one) => one.endsWith(`/${id}`))) {
    if (await isPart(context, place, name)) continue;
    const changed = await change(context, place, name, (hold) => ({
      ...hold,
      release: hold.release ?? { ...withoutMissing(request), at: now() },
    }));
    if (changed) last = await settle(context, place, changed);
    if (!last.ok) return last;
  }
  return last;
}

/** All holds of a tenant. */
export async function listHolds({ store, zone, keys }: EraseContext, tenant: string): Promise<HoldState[]> {
  const place = await keys.subjects(tenant);
  if (!place) return [];
  const names = await store.list('sidecar', holdsPrefix(zone, tenant), HOLDS_PER_TENANT_MAX + 1);
  const read = await Promise.all(names.map((name) => readHold(store, place.key, name)));
  return read
    .flatMap((stored) => (stored && stored.hold.of === undefined ? [stored.hold] : []))
    .sort((a, b) => a.at - b.at);
}

/** Sends missing reports and finishes releases. For the timer. */
export async function settleHolds(context: EraseContext): Promise<void> {
  const names = await context.store.list('sidecar', holdsPrefix(context.zone), HOLDS_LISTED_MAX);
  for (const name of names) {
    try {
      await settleOne(context, name);
    } catch (error) {
      context.failed(error);
    }
  }
}

async function settleOne(context: EraseContext, name: string): Promise<void> {
  const place = await context.keys.subjects(tenantOfHold(name));
  if (!place || (await isPart(context, place, name))) return;
  const stored = await readHold(context.store, place.key, name);
  if (stored && (!stored.hold.told || stored.hold.release)) await settle(context, place, stored);
}

async function settle(context: EraseContext, place: SubjectPlace, stored: StoredHold): Promise<Result<HoldState>> {
  let { hold } = stored;
  if (!hold.told) {
    for (const subject of hold.also ?? []) await holdPart(context, place, stored, subject);
    // It holds from now on; the running destruction shows whether it came in time.
    if (await isLate(context, place, hold))
      return no(refuse('audit_unavailable', undefined, 'something is being destroyed'));
    const reported = await reportHold(context, place, { type: 'hold.set', hold, by: hold });
    if (!reported.ok) return reported;
    const changed = await change(context, place, stored.name, (one) => ({ ...one, told: true }));
    if (!changed) return ok(hold);
    hold = changed.hold;
  }
  if (!hold.release) return ok(hold);
  const reported = await reportHold(context, place, { type: 'hold.release', hold, by: hold.release });
  if (!reported.ok) return reported;
  for (const subject of hold.also ?? [])
    await context.store.remove('sidecar', await partName(context, place, hold, subject));
  await context.store.remove('sidecar', stored.name);
  return ok(hold);
}

/** Reports whether a running destruction may have missed the hold. */
async function isLate({ store, zone }: EraseContext, place: SubjectPlace, hold: HoldState): Promise<boolean> {
  const { tenant, subject, also = [] } = hold;
  if (await store.read('sidecar', endingName(zone, tenant))) return true;
  const tags = subject === undefined ? [] : await Promise.all([subject, ...also].map((one) => place.key.tag(one)));
  const names =
    subject === undefined
      ? await store.list('sidecar', erasuresPrefix(zone, tenant), ERASURES_PER_TENANT_MAX)
      : tags.map((tag) => erasureName(zone, tenant, tag));
  const found = await Promise.all(names.map((name) => readErasure(place, name)));
  return found.some((stored) => stored?.state.destroying);
}

const partName = async ({ zone }: EraseContext, { key }: SubjectPlace, { tenant, id }: HoldState, subject: string) =>
  holdName(zone, tenant, await key.tag(subject), id);

/** Holds all commitments of the subject before the report. */
async function holdPart(context: EraseContext, place: SubjectPlace, { name: of, hold }: StoredHold, subject: string) {
  const { also: _, ...rest } = hold;
  const name = await partName(context, place, hold, subject);
  await context.store.create('sidecar', name, await place.key.seal({ ...rest, subject, of, told: true }, name));
}

/** Reports whether it belongs to another hold. Removes a remainder of one that is over. */
async function isPart({ store }: EraseContext, { key }: SubjectPlace, name: string): Promise<boolean> {
  const of = (await readHold(store, key, name))?.hold.of;
  if (of !== undefined && !(await store.read('sidecar', of))) await store.remove('sidecar', name);
  return of !== undefined;
}

interface HoldEvent {
  readonly type: 'hold.set' | 'hold.release';
  readonly hold: HoldState;
  readonly by: Officer & { readonly reason: string };
}

async function reportHold(
  { zone, report }: EraseContext,
  place: SubjectPlace,
  { type, hold, by }: HoldEvent,
): Promise<Result<unknown>> {
  const { id, tenant, subject, also = [], basis } = hold;
  const { reason, ...officer } = by;
  const known = subject === undefined ? [] : [subject, ...also];
  const named = await Promise.all(known.map((one) => nameInLog(place, one)));
  const held = named.filter((one) => one !== undefined).join(' ');
  const scope = subject === undefined ? ('tenant' as const) : ('subject' as const);
  const more = { ...(held !== '' && { held }), ...(basis !== undefined && { basis }) };
  return report({ type, tenant, hold: id, scope, zone, reason, ...more, ...officerOf(officer) });
}

/** `undefined` when it is gone. */
async function change(
  { store }: EraseContext,
  { key }: SubjectPlace,
  name: string,
  next: (hold: HoldState) => HoldState,
): Promise<StoredHold | undefined> {
  for (let tries = 0; tries < AUDIT_RACE_TRIES_MAX; tries += 1) {
    const stored = await readHold(store, key, name);
    if (!stored) return undefined;
    const changed = next(stored.hold);
    if (JSON.stringify(changed) === JSON.stringify(stored.hold)) return stored;
    await store.replace('sidecar', name, await key.seal(changed, name), stored.version);
  }
  throw new Error('a hold changes all the time');
}

const withoutMissing = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as T;
