// Keys of hidden values in one zone. A record opens with two secrets: that of its subject, and that of its
// class and month. Destroying the first erases the subject, destroying the second ends a period of retention;
// nothing else changes, and every proof holds. Both are encrypted with the tenant's key, which is encrypted
// with a key that no store has.
import { z } from 'zod';
import { toBase64 } from '../../../shared/base64.ts';
import type { LogStore } from '../log/log-store.ts';
import { type Month, monthOf, type RetentionName } from './retention.ts';
import { deriveKey, KEY_BYTES, type KeyWrap } from './sidecar-box.ts';
import { KeyCache } from './sidecar-cache.ts';
import { periodName } from './sidecar-names.ts';
import { bytesOf, makeSubject, readSecret, type SubjectPlace } from './sidecar-subject.ts';
import { findTenantKey, type TenantKey } from './sidecar-tenant.ts';

export interface SidecarParts {
  readonly store: LogStore;
  readonly zone: string;
  readonly wrap: KeyWrap;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Header of a box. */
export interface BoxAbout {
  /** The number of its subject; empty when it has none. */
  readonly sid: string;
  readonly ret: RetentionName;
  readonly month: Month;
}

export interface BoxKey extends BoxAbout {
  readonly key: CryptoKey;
}

export class SidecarKeys {
  readonly #parts: SidecarParts;
  readonly #tenants: KeyCache<TenantKey>;
  readonly #periods: KeyCache<Uint8Array>;
  readonly #making: KeyCache<BoxKey>;
  readonly #opening: KeyCache<CryptoKey>;

  constructor(parts: SidecarParts) {
    this.#parts = parts;
    const now = () => parts.now();
    this.#tenants = new KeyCache(now);
    this.#periods = new KeyCache(now);
    this.#making = new KeyCache(now);
    this.#opening = new KeyCache(now);
  }

  get zone(): string {
    return this.#parts.zone;
  }

  /** `undefined` when there is none, or no more, and none is to be made. */
  tenant(tenant: string | undefined, make = false): Promise<TenantKey | undefined> {
    return this.#tenants.get(String(tenant), () => findTenantKey(this.#parts, tenant, make));
  }

  /** Returns the subjects of a tenant; `undefined` for one without hidden values. */
  async subjects(tenant: string | undefined, make = false): Promise<SubjectPlace | undefined> {
    const key = await this.tenant(tenant, make);
    const { store, zone } = this.#parts;
    return key && { store, zone, tenant, key };
  }

  /** For what happens now. */
  async toHide(tenant: string | undefined, subject: string | undefined, ret: RetentionName): Promise<BoxKey> {
    const month = monthOf(this.#parts.now());
    const made = await this.#making.get(JSON.stringify([tenant, subject, ret, month]), async () => {
      const place = (await this.subjects(tenant, true)) as SubjectPlace;
      const found = subject === undefined ? undefined : await makeSubject(place, subject, ret, month);
      const about = { sid: found?.sid ?? '', ret, month };
      const period = (await this.#period(place, ret, month, true)) as Uint8Array;
      return { ...about, key: await this.#derive(tenant, about, found && bytesOf(found.secret.key), period) };
    });
    return made as BoxKey;
  }

  /** `undefined` when one of its secrets was destroyed. */
  toOpen(tenant: string | undefined, about: BoxAbout): Promise<CryptoKey | undefined> {
    const { sid, ret, month } = about;
    return this.#opening.get(JSON.stringify([tenant, sid, ret, month]), async () => {
      const place = await this.subjects(tenant);
      const secret = place && sid !== '' ? await readSecret(place, sid) : undefined;
      if (!place || (sid !== '' && !secret)) return undefined;
      const period = await this.#period(place, ret, month, false);
      return period && this.#derive(tenant, about, secret && bytesOf(secret.key), period);
    });
  }

  /** Returns the same keys with an empty cache. */
  fresh(): SidecarKeys {
    return new SidecarKeys(this.#parts);
  }

  /** Forgets what this process holds: what was destroyed must not live on here. */
  forget(): void {
    for (const held of [this.#tenants, this.#periods, this.#making, this.#opening]) held.clear();
  }

  #derive(
    tenant: string | undefined,
    about: BoxAbout,
    subject: Uint8Array | undefined,
    period: Uint8Array,
  ): Promise<CryptoKey> {
    return deriveKey(subject ? [subject, period] : [period], describeBox(this.zone, tenant, about));
  }

  #period({ key, tenant }: SubjectPlace, ret: RetentionName, month: Month, make: boolean) {
    const { store, zone } = this.#parts;
    const name = periodName(zone, ret, month, tenant);
    return this.#periods.get(name, async () => {
      let stored = await store.read('sidecar', name);
      if (!stored && make) {
        const fresh = toBase64(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
        await store.create('sidecar', name, await key.seal(fresh, name));
        stored = await store.read('sidecar', name);
        if (!stored) throw new Error('the secret of a month was deleted in this moment');
      }
      return stored && bytesOf(z.string().parse(await key.open(stored.bytes, name)));
    });
  }
}

/** Additional data that bind a box to its place. */
export const describeBox = (zone: string, tenant: string | undefined, { sid, ret, month }: BoxAbout): string =>
  JSON.stringify(['auricle audit box 2', zone, tenant ?? null, sid, ret, month]);
