import { createDecipheriv, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { streamFormat } from '../../shared/stream/format.ts';
import { checkpoint } from '../../shared/stream/link.ts';
import { derivedKey } from '../auth/derived-key.ts';
import { RESUME_TOKEN_CHARACTERS } from '../limits.ts';
import type { Settings } from '../settings.ts';

/** State of a session for an edge that does not know the session. */
const resumable = z.object({
  v: z.literal(1),
  session: z.string(),
  tenant: z.string(),
  subject: z.string().optional(),
  model: z.string(),
  /** Revision of its last agent; absent before the first. */
  revision: z.string().optional(),
  language: z.string().optional(),
  /** Family of the model, while its agent detects the language. */
  family: z.string().optional(),
  /** Languages of the family among which the agent detects. */
  languages: z.array(z.string()).optional(),
  format: streamFormat,
  /** When the session began, and ends at the latest, ms since 1970. Going on with it makes it no longer. */
  began: z.number(),
  until: z.number(),
  /** When the token was made, ms since 1970. */
  sealed: z.number().optional(),
  /** Absent at the beginning. */
  checkpoint: checkpoint.optional(),
});
export type Resumable = z.infer<typeof resumable>;

const NONCE = 12;
const TAG = 16;

/** A token outlives the object that made it. With a new ticket key it is invalid, and its client begins a new session. */
const keyOf = (settings: Settings) => derivedKey(settings, 'stream resume token 1');

const sealingKeys = new WeakMap<KeyObject, Promise<CryptoKey>>();

function sealingKeyOf(settings: Settings): Promise<CryptoKey> {
  const key = keyOf(settings);
  let imported = sealingKeys.get(key);
  if (!imported) {
    imported = crypto.subtle.importKey('raw', new Uint8Array(key.export()), 'AES-GCM', false, ['encrypt']);
    sealingKeys.set(key, imported);
  }
  return imported;
}

/**
 * base64url of AES-256-GCM: the client can neither read nor change it. A session seals a token at each checkpoint, so
 * this uses WebCrypto: a cipher of `node:crypto` is a stream in Workers, and costs more than twice as much.
 */
export async function sealResume(token: Resumable, settings: Settings): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(NONCE));
  const key = await sealingKeyOf(settings);
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, Buffer.from(JSON.stringify(token)));
  return Buffer.concat([iv, new Uint8Array(sealed)]).toString('base64url');
}

/** Opens a token. Refuses with `resume_invalid` one that this edge did not make, or that has expired. */
export function openResume(text: string, settings: Settings, now: number): Result<Resumable> {
  const invalid = (detail: string): Result<never> => no(refuse('resume_invalid', undefined, detail));
  if (text.length > RESUME_TOKEN_CHARACTERS) return invalid('too long');
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length < NONCE + TAG) return invalid('too short');
  let json: unknown;
  try {
    const decipher = createDecipheriv('aes-256-gcm', keyOf(settings), bytes.subarray(0, NONCE));
    decipher.setAuthTag(bytes.subarray(-TAG));
    const opened = Buffer.concat([decipher.update(bytes.subarray(NONCE, -TAG)), decipher.final()]);
    json = JSON.parse(opened.toString('utf8'));
  } catch {
    return invalid('not made here');
  }
  const token = resumable.safeParse(json);
  if (!token.success) return invalid('of another version');
  return token.data.until > now ? ok(token.data) : invalid('expired');
}
