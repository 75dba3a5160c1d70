// Client of the edge for the usage of uploads.
import { importJWK, SignJWT } from 'jose';
import { SERVICE_TYPE } from '../../shared/callers.ts';
import { SERVICE_TOKEN_S, USAGE_REPORT_MS } from '../../shared/jobs/limits.ts';
import { EDGE_AUDIENCE, FUNCTIONS_ISSUER, type UploadUsage } from '../../shared/jobs/usage.ts';
import type { Settings } from '../settings.ts';

export interface Usage {
  /**
   * Books usage. Resolves once it is booked, by this call or an earlier one, or when no edge is configured.
   * Throws `UsageRefused` when this row will never be booked, and another error when booking is unavailable.
   */
  book(usage: UploadUsage): Promise<void>;
}

/** The edge refused the row. */
export class UsageRefused extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`the edge answered ${status}`);
    this.status = status;
  }
}

/** Statuses that concern the caller or its rate, not the row. */
const OF_THE_CALLER = [401, 403, 408, 429];
const isOfRow = (status: number) => status >= 400 && status < 500 && !OF_THE_CALLER.includes(status);

export function openUsage({ EDGE_URL, SERVICE_KEY }: Pick<Settings, 'EDGE_URL' | 'SERVICE_KEY'>): Usage {
  if (EDGE_URL === undefined || SERVICE_KEY === undefined) return { book: async () => {} };
  const key = importJWK(SERVICE_KEY, 'ES256');
  // A failure surfaces where it is used.
  key.catch(() => {});
  const address = new URL('/v1/usage', EDGE_URL);
  return {
    async book(usage) {
      const issued = Math.floor(Date.now() / 1_000);
      const token = await new SignJWT({ tenant: usage.tenant })
        .setProtectedHeader({ alg: 'ES256', typ: SERVICE_TYPE, ...(SERVICE_KEY.kid && { kid: SERVICE_KEY.kid }) })
        .setIssuer(FUNCTIONS_ISSUER)
        .setAudience(EDGE_AUDIENCE)
        .setIssuedAt(issued)
        .setExpirationTime(issued + SERVICE_TOKEN_S)
        .sign(await key);
      const response = await fetch(address, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify(usage),
        signal: AbortSignal.timeout(USAGE_REPORT_MS),
      });
      await response.body?.cancel();
      if (isOfRow(response.status)) throw new UsageRefused(response.status);
      if (response.status !== 200) throw new Error(`the edge answered ${response.status}`);
    },
  };
}
