// Classes of retention: how long hidden values may be disclosed. Leaves are never deleted, since they hold no
// personal data.
import { DAY_MS } from '../../../shared/day.ts';

export interface RetentionClass {
  /** Period after which the records can no longer be opened. */
  readonly days: number;
  /** Legal minimum in days, which overrides an erasure request of the subject; 0 without one. */
  readonly atLeastDays: number;
  /** The rule and its source. */
  readonly source: string;
}

/**
 * The operator's lawyers confirm the classes that apply. A class is never removed from this table: its name
 * is in leaves and in names of keys.
 */
export const retentionClasses = {
  standard: {
    days: 2_557,
    atLeastDays: 0,
    source: 'no rule: seven years, as long as the log itself is locked, or until the subject wants it erased',
  },
  hipaa: {
    days: 2_557,
    atLeastDays: 2_192,
    source:
      '45 CFR 164.316(b)(2)(i): six years from creation or last effect; seven cover the longer ones of most states',
  },
  'ai-act': {
    days: 183,
    atLeastDays: 183,
    source: 'Regulation (EU) 2024/1689 Art. 19(1) and 26(6): logs of high-risk systems, at least six months',
  },
  csl: {
    days: 183,
    atLeastDays: 183,
    source: 'Cybersecurity Law of the PRC Art. 21(3) as amended 2026: network logs, at least six months',
  },
  pci: {
    days: 366,
    atLeastDays: 366,
    source: 'PCI DSS 4.0.1 requirement 10.5.1: audit log history of twelve months',
  },
} as const satisfies Record<string, RetentionClass>;

export type RetentionName = keyof typeof retentionClasses;
export const retentionNames = Object.keys(retentionClasses) as [RetentionName, ...RetentionName[]];
export const isRetention = (name: unknown): name is RetentionName =>
  typeof name === 'string' && Object.hasOwn(retentionClasses, name);

/** A UTC calendar month, as `202611`: records that expire together are destroyed together. */
export type Month = string;
export const monthOf = (at: number): Month => new Date(at).toISOString().slice(0, 7).replace('-', '');
export const isMonth = (text: string): boolean => /^[1-9]\d{3}(0[1-9]|1[0-2])$/.test(text);

/** Returns the end of a month, epoch ms. */
const endOfMonth = (month: Month): number => Date.UTC(Number(month.slice(0, 4)), Number(month.slice(4)), 1);

/**
 * Returns the end of a class and month: no record is retained less than its days, and none a month longer.
 */
export const retainedUntil = (name: RetentionName, month: Month): number =>
  endOfMonth(month) + retentionClasses[name].days * DAY_MS;

/** Returns the end of the legal minimum of a class and month; 0 without one. */
export function lawfulUntil(name: RetentionName, month: Month): number {
  const { atLeastDays } = retentionClasses[name];
  return atLeastDays === 0 ? 0 : endOfMonth(month) + atLeastDays * DAY_MS;
}
