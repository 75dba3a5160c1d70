// Names of the secrets of hidden values. A subject appears as a keyed hash or a random number, never by name.
import type { Month, RetentionName } from './retention.ts';

/** Stands for the absent tenant. */
const NO_TENANT = '@nobody';

/** Encodes a tenant as one part of a name. */
const part = (tenant: string | undefined): string => encodeURIComponent(tenant ?? NO_TENANT);

export const tenantKeyName = (zone: string, tenant: string | undefined): string =>
  `${zone}/keys/${tenant ?? NO_TENANT}`;

/** Secret of all records of a class, month and tenant. */
export const periodsPrefix = (zone: string, ret?: RetentionName): string =>
  `${zone}/periods/${ret === undefined ? '' : `${ret}/`}`;
export const periodName = (zone: string, ret: RetentionName, month: Month, tenant: string | undefined): string =>
  `${periodsPrefix(zone, ret)}${month}/${part(tenant)}`;

/** From a subject, as `tag` hides it, to the number that stands for it in records. */
export const pointerName = (zone: string, tenant: string | undefined, tag: string): string =>
  `${zone}/names/${part(tenant)}/${tag}`;

/** Secret of all records of a subject, by its number. */
export const subjectName = (zone: string, tenant: string | undefined, sid: string): string =>
  `${zone}/subjects/${part(tenant)}/${sid}`;

/** Acts on the record, by those who answer for it. */
const ACTS = /^(hold\.(set|release)|erasure\.exec|export\.(create|read)|access\.audit|operator\.act)$/;

/**
 * Returns the subject whose secret hides an act. Acts on the record have a secret of their own: an erasure
 * of the actor's data keeps the reasons of holds and erasures.
 */
export const hiddenUnder = (type: string | undefined, subject: string): string =>
  ACTS.test(type ?? '') ? actsOf(subject) : subject;

/** No commitment looks like that. */
export const actsOf = (subject: string): string => `acts of ${subject}`;
