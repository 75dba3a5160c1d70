// Tokens of the app's own identity, from the place that Azure Functions gives each app that has one: `IDENTITY_ENDPOINT`,
// asked with `IDENTITY_HEADER` (learn.microsoft.com, "managed identities for App Service", api-version 2019-08-01).
import { z } from 'zod';
import { limits } from '../../../shared/limits.ts';
import { readText } from '../../read-text.ts';

export type Send = (url: string, init: RequestInit & { readonly signal: AbortSignal }) => Promise<Response>;

export interface Identity {
  readonly endpoint: string;
  readonly header: string;
  /** Client id of the identity, where the app has another one than its own. */
  readonly client?: string | undefined;
}

/** `expires_on` is in seconds since 1970, as text. */
const given = z.object({ access_token: z.string().min(1), expires_on: z.coerce.number().positive() });

interface Token {
  readonly text: string;
  /** Until when it is used, ms since 1970. */
  readonly until: number;
}

/**
 * For one resource. What is asked at the same time is asked once, for all who wait: that one of them goes away ends it for
 * nobody. What failed is not remembered.
 */
export class VaultTokens {
  readonly #identity: Identity;
  readonly #resource: string;
  readonly #send: Send;
  readonly #now: () => number;
  #kept: Token | undefined;
  #asking: Promise<Token> | undefined;

  constructor(identity: Identity, resource: string, send: Send, now: () => number) {
    this.#identity = identity;
    this.#resource = resource;
    this.#send = send;
    this.#now = now;
  }

  async token(): Promise<string> {
    if (this.#kept && this.#now() < this.#kept.until) return this.#kept.text;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    this.#kept = await this.#asking;
    return this.#kept.text;
  }

  /** It was not accepted. One that was had meanwhile stays. */
  drop(text: string): void {
    if (this.#kept?.text === text) this.#kept = undefined;
  }

  async #ask(): Promise<Token> {
    const { endpoint, header, client } = this.#identity;
    const url = new URL(endpoint);
    url.searchParams.set('resource', this.#resource);
    url.searchParams.set('api-version', '2019-08-01');
    if (client !== undefined) url.searchParams.set('client_id', client);
    const response = await this.#send(url.href, {
      headers: { 'x-identity-header': header },
      redirect: 'error',
      signal: AbortSignal.timeout(limits.auditVaultMs.value),
    });
    const text = await readText(response, limits.auditVaultBytes.value);
    if (response.status !== 200) throw new Error(`no token: the identity of the app answers ${response.status}`);
    const { access_token, expires_on } = given.parse(JSON.parse(text ?? ''));
    return { text: access_token, until: expires_on * 1_000 - limits.auditTokenEarlyMs.value };
  }
}
