// One question to Azure Key Vault or a Managed HSM over its REST interface (api-version 7.4), asked again when it makes sense.
import { limits } from '../../../shared/limits.ts';
import { readText } from '../../read-text.ts';
import type { Send, VaultTokens } from './vault-token.ts';

export interface VaultParts {
  readonly send: Send;
  /** Milliseconds since 1970. */
  now(): number;
  /** Rings after so many milliseconds. */
  after(ms: number): { readonly rings: Promise<unknown>; cancel(): void };
}

/** It was not done, and asking again now is of no use. */
export class VaultFailed extends Error {
  /** How long the vault wants not to be asked, ms. */
  readonly restMs: number;

  constructor(message: string, restMs = 0) {
    super(message);
    this.restMs = restMs;
  }
}

/**
 * The answer as JSON. A token that is not accepted is asked for anew, once; 429, 5xx and no answer are tried again, as often
 * as `limits.auditVaultTries` says and as long as there is time until `until`.
 */
export async function askVault(
  { send, now, after }: VaultParts,
  tokens: VaultTokens,
  url: string,
  body: object | undefined,
  until: number,
  signal: AbortSignal,
): Promise<unknown> {
  let renewed = false;
  for (let tries = 1; ; tries += 1) {
    const token = await tokens.token();
    const response = await send(`${url}?api-version=7.4`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
      redirect: 'error',
      signal,
    }).catch(() => undefined);
    if (response?.status === 200) {
      const text = await readText(response, limits.auditVaultBytes.value);
      return JSON.parse(text ?? '');
    }
    await response?.body?.cancel();
    const { status } = response ?? {};
    if (status === 401 && !renewed) {
      renewed = true;
      tokens.drop(token);
      continue;
    }
    const what = status === undefined ? 'the vault cannot be reached' : `the vault answers ${status}`;
    if (signal.aborted || (status !== undefined && status !== 429 && status < 500)) throw new VaultFailed(what);
    const wished = waitOf(response?.headers.get('retry-after'), now());
    const pause = wished ?? limits.auditVaultPauseMs.value * 2 ** (tries - 1);
    if (tries >= limits.auditVaultTries.value || now() + pause >= until) throw new VaultFailed(what, wished);
    await after(pause).rings;
  }
}

/** `Retry-After` in ms: seconds, or a date. */
function waitOf(header: string | null | undefined, now: number): number | undefined {
  if (header === null || header === undefined || header === '') return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
