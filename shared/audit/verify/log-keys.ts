// Returns the keys of a log by a policy. A key stays valid for later years until the policy names another of
// its type, since it may name each key once only.
import { yearIn } from '../bundle/previous.ts';
import type { NoteKey } from '../note-key.ts';
import type { PolicyLog } from '../policy.ts';

/** Returns the name of a log without its year. */
const regionOf = (origin: string): string => origin.replace(/\/\d{4}$/, '');

export const isLaterLog = (one: string, other: string): boolean =>
  regionOf(one) === regionOf(other) && (yearIn(one) ?? 0) > (yearIn(other) ?? 0);

/** Returns the keys under the name of that log. */
export function keysOfLog(logs: readonly PolicyLog[], origin: string): NoteKey[] {
  const named = logs.filter(({ key: { name } }) => name === origin || isLaterLog(origin, name)).map(({ key }) => key);
  const newest = (type: NoteKey['type']) =>
    Math.max(...named.filter((key) => key.type === type).map(({ name }) => yearIn(name) ?? 0));
  return named
    .filter(({ type, name }) => name === origin || (yearIn(name) ?? 0) === newest(type))
    .map((key) => ({ ...key, name: origin }));
}
