// Hidden values of leaves, encrypted in boxes that name the secrets that open them and nothing else.

import { readDisclosure } from '../../../shared/audit/commitment.ts';
import type { LeafDraft } from '../../../shared/audit/leaf.ts';
import { fromBase64, toBase64 } from '../../../shared/base64.ts';
import { isMonth, isRetention, type RetentionName } from './retention.ts';
import { decrypt, encrypt } from './sidecar-box.ts';
import { type BoxAbout, describeBox, type SidecarKeys } from './sidecar-keys.ts';
import { hiddenUnder } from './sidecar-names.ts';

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

/** Reads the header of a box; `undefined` when it is none. */
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
  const header = readBox(hidden);
  const box = header && fromBase64(header.box);
  if (!box) return undefined;
  const { sid, ret, month } = header;
  const key = await keys.toOpen(tenant, { sid, ret, month });
  if (!key) return 'erased';
  try {
    const text = await decrypt(key, box, describeBox(keys.zone, tenant, header));
    return JSON.parse(new TextDecoder().decode(text)) as Disclosures;
  } catch {
    return undefined;
  }
}
