// Rows of the index: entries of a tenant by day, request, model and number of a subject. A row holds a
// position only, no name and no content.
import { createHash } from 'node:crypto';
import { toBase64Url } from '../../../shared/audit/commitment.ts';
import type { Leaf } from '../../../shared/audit/leaf.ts';
import { endOf, type Value } from '../../store/rows.ts';
import { digits } from '../log/log-names.ts';

export const kinds = ['day', 'request', 'model', 'subject'] as const;
export type Kind = (typeof kinds)[number];

export interface Position {
  readonly year: number;
  readonly index: number;
}

const digest = (value: string): string => toBase64Url(createHash('sha256').update(value).digest().subarray(0, 16));

/** Nothing that stands in a leaf can be a name that storage refuses. */
const safe = (value: string): string => (/^[a-z0-9_-]{1,63}$/.test(value) ? value : `@${digest(value)}`);

export const partitionOf = (kind: Kind, zone: string, tenant: string, value: string): string =>
  `${kind}!${zone}!${safe(tenant)}${kind === 'day' ? '' : `!${digest(value)}`}`;

/** Rows of a partition are in the order of the log; those of days begin with the day. */
export function keyOf({ year, index }: Position, day?: string): string {
  const place = `${year}-${digits(index)}`;
  return day === undefined ? place : `${day}!${place}`;
}

export function readKey(key: string): Position | undefined {
  const [, year, index] = /(?:^|!)(\d{4})-(\d{16})$/.exec(key) ?? [];
  return index === undefined ? undefined : { year: Number(year), index: Number(index) };
}

/** The day of UTC on which it happened, as `20261122`; `undefined` for a time that is none. */
export function dayOf({ t }: Pick<Leaf, 't'>): string | undefined {
  const [, day] = /^(\d{4}-\d{2}-\d{2})T/.exec(safeDate(t.origin)) ?? [];
  return day?.replaceAll('-', '');
}

const safeDate = (at: number): string => {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
};

export interface IndexRow {
  readonly partition: string;
  readonly key: string;
  readonly value?: Value;
}

/** Everything by which a leaf is found; `sid` is the number of its subject. */
export function rowsOf(zone: string, leaf: Leaf, at: Position, sid: string | undefined): IndexRow[] {
  const { tn: tenant, req, model } = leaf;
  if (tenant === undefined) return [];
  const row = (kind: Kind, value: unknown, key = keyOf(at)): IndexRow[] =>
    typeof value === 'string' && value !== '' ? [{ partition: partitionOf(kind, zone, tenant, value), key }] : [];
  const day = dayOf(leaf);
  return [...row('day', day, keyOf(at, day)), ...row('request', req), ...row('model', model), ...row('subject', sid)];
}

/** The keys of one day, or of all. */
export const daysBetween = (day: string | undefined): readonly [string, string] =>
  day === undefined ? ['', endOf('')] : [`${day}!`, endOf(`${day}!`)];
