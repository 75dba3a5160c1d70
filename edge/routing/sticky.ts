import { hash } from './cohort.ts';

/** Member of a rendezvous hash. */
interface Member {
  readonly agent: string;
  /** Agents with twice the slots get twice the keys. */
  readonly slots: number;
}

/**
 * Returns the members in the order in which a key prefers them (weighted rendezvous hashing): the same in
 * every isolate that knows the same members. When a member comes or goes, only the keys it gains or held
 * change their first choice; the former first choice of a gained key becomes its second.
 */
export function inOrderOf<T extends Member>(key: string, members: readonly T[]): T[] {
  const scores = new Map(members.map((member) => [member, score(key, member)]));
  const of = (member: T) => scores.get(member) ?? 0;
  return [...members].sort((one, other) => of(other) - of(one) || (one.agent < other.agent ? -1 : 1));
}

/** A hash of zero would be the logarithm of zero, so every hash is moved by a half. */
function score(key: string, { agent, slots }: Member): number {
  return -slots / Math.log((hash(`${key}\n${agent}`) + 0.5) / 2 ** 32);
}
