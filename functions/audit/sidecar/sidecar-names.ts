// Where everything lies that opens what leaves hide. Subjects are never in a name: what stands for one is a keyed hash, or a
// number drawn for it.
import type { Month, RetentionName } from '../../../shared/audit/retention.ts';

/** Who has no tenant. */
const NOBODY = '@nobody';

/** As a part of a name: nothing that a tenant is called can reach into another part. */
const part = (tenant: string | undefined): string => encodeURIComponent(tenant ?? NOBODY);

export const tenantKeyName = (zone: string, tenant: string | undefined): string => `${zone}/keys/${tenant ?? NOBODY}`;

/** What all records of a class, a month and a tenant need. */
export const periodsPrefix = (zone: string, ret?: RetentionName): string =>
  `${zone}/periods/${ret === undefined ? '' : `${ret}/`}`;
export const periodName = (zone: string, ret: RetentionName, month: Month, tenant: string | undefined): string =>
  `${periodsPrefix(zone, ret)}${month}/${part(tenant)}`;

/** From a subject, as `tag` hides it, to the number that stands for it in records. */
export const pointerName = (zone: string, tenant: string | undefined, tag: string): string =>
  `${zone}/names/${part(tenant)}/${tag}`;

/** What all records of a subject need, by its number. */
export const subjectName = (zone: string, tenant: string | undefined, sid: string): string =>
  `${zone}/subjects/${part(tenant)}/${sid}`;

/** Acts upon the record: by those who answer for it, and not what the record is about. */
const ACTS = /^(hold\.(set|release)|erasure\.exec|export\.(create|read)|access\.audit|operator\.act)$/;

/**
 * Under whose secret a leaf hides what it does. Whoever acts upon the record is a subject as well, and has another secret for
 * that: erasing somebody's own data must not take along why somebody was held or erased.
 */
export const hiddenUnder = (type: string | undefined, subject: string): string =>
  ACTS.test(type ?? '') ? actsOf(subject) : subject;

/** No commitment looks like that. */
export const actsOf = (subject: string): string => `acts of ${subject}`;
