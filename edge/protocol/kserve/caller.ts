import { createHmac } from 'node:crypto';
import type { Claims } from '../../../shared/tenant/claims.ts';
import { derivedKey } from '../../auth/derived-key.ts';
import type { Settings } from '../../settings.ts';

/** The owner of a sequence, as agents compare it. Agents learn neither the subject nor the session's name. */
export interface SequenceCaller {
  readonly caller: string;
  readonly session?: string;
}

interface CallerFacts {
  readonly claims: Pick<Claims, 'tenant' | 'subject'>;
  /** The header `authorization`: a token without a subject owns its sequences by itself. */
  readonly authorization: string | null;
  /** The header `x-auricle-session`. */
  readonly session: string | undefined;
}

/** Returns the owner of the sequences of a request; the same at every isolate with the same ticket key. */
export function sequenceCaller({ claims, authorization, session }: CallerFacts, settings: Settings): SequenceCaller {
  const { tenant, subject } = claims;
  const owner = subject === undefined ? ['token', tenant, authorization] : ['subject', tenant, subject];
  const caller = digest(owner, settings);
  return { caller, ...(session !== undefined && { session: digest(['session', caller, session], settings) }) };
}

const digest = (parts: readonly (string | null)[], settings: Settings): string =>
  createHmac('sha256', derivedKey(settings, 'sequence caller 1')).update(JSON.stringify(parts)).digest('base64url');
