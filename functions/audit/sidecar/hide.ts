// Hidden values of leaves, encrypted in boxes that name the secrets that open them and nothing else.

import { readDisclosure } from '../../../shared/audit/commitment.ts';
import type { LeafDraft } from '../../../shared/audit/leaf.ts';
import { fromBase64, toBase64 } from '../../../shared/base64.ts';
import { isMonth, isRetention, type RetentionName } from './retention.ts';
import { decrypt, encrypt } from './sidecar-box.ts';
import { type BoxAbout, describeBox, type SidecarKeys } from './sidecar-keys.ts';
import { hiddenUnder, tenantKeyName } from './sidecar-names.ts';

type Disclosures = Readonly<Record<string, string>>;

/** The class of retention of a tenant's hidden values. */
export type RetentionOf = (tenant: string | undefined) => RetentionName;

/** Encrypts what a leaf hides. */
export interface Hide {
  (leaf: Pick<LeafDraft, 'tn' | 'ret'> & { readonly type?: string }, disclosures: Disclosures): Promise<string>;
  readonly retention?: RetentionOf;
}

/** Hides for one zone: under the subject that the disclosures name, if they name one, or under its acts. */
export function openHide(keys: SidecarKeys, retention?: RetentionOf): Hide {
  const hide: Hide = async ({ tn, ret, type }, disclosures) => {
    const { value } = readDisclosure(disclosures.subject ?? '') ?? {};
    const subject = typeof value === 'string' ? hiddenUnder(type, value) : undefined;
    const { key, ...about } = await keys.toHide(tn, subject, isRetention(ret) ? ret : 'standard');
    const text = new TextEncoder().encode(JSON.stringify(disclosures));
    const box = toBase64(await encrypt(key, text, describeBox(keys.zone, tn, about)));
    return `2.${about.sid}.${about.ret}.${about.month}.${box}`;
  };
  return Object.assign(hide, { ...(retention && { retention }) });
}

/** Reads the header of a box; `undefined` for version 1, which has none. */
export function readBox(hidden: string): (BoxAbout & { readonly box: string }) | undefined {
  const [version, sid = '', ret, month = '', box = '', ...rest] = hidden.split('.');
  if (version !== '2' || !isRetention(ret) || !isMonth(month) || rest.length > 0) return undefined;
  return { sid, ret, month, box };
}

/**
 * Opens the disclosures of a leaf by name. `erased` when a needed secret is destroyed; `undefined` when the
 * box is not of that tenant.
 */
export async function openHidden(
  keys: SidecarKeys,
  tenant: string | undefined,
  hidden: string,
): Promise<Disclosures | 'erased' | undefined> {
  const said = readBox(hidden);
  const box = fromBase64(said?.box ?? hidden);
  if (!box) return undefined;
  const open = said ? await openerOf(keys, tenant, said) : await firstOpenerOf(keys, tenant);
  if (!open) return 'erased';
  try {
    return JSON.parse(new TextDecoder().decode(await open(box))) as Disclosures;
  } catch {
    return undefined;
  }
}

type Open = (box: Uint8Array) => Promise<Uint8Array>;

async function openerOf(keys: SidecarKeys, tenant: string | undefined, about: BoxAbout): Promise<Open | undefined> {
  const { sid, ret, month } = about;
  const key = await keys.toOpen(tenant, { sid, ret, month });
  return key && ((box) => decrypt(key, box, describeBox(keys.zone, tenant, about)));
}

/** The first version: one key for all of a tenant. */
async function firstOpenerOf(keys: SidecarKeys, tenant: string | undefined): Promise<Open | undefined> {
  const key = await keys.tenant(tenant);
  return key && ((box) => key.openDirectly(box, tenantKeyName(keys.zone, tenant)));
}
