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
