// Notices as standard-webhooks has them: what is signed, and with what.
import { createHmac } from 'node:crypto';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Settings } from '../settings.ts';
import { callbackProblem } from './callback.ts';
import type { JobContext } from './context.ts';

/** A callback that can never be delivered is refused when it is given. */
export function refusalOfCallback(
  { settings }: Pick<JobContext, 'settings'>,
  { callback }: { readonly callback?: string | undefined },
): Refusal | undefined {
  if (callback === undefined) return undefined;
  const unsent = settings.WEBHOOK_KEY ? undefined : 'no notices are sent here';
  const rule = unsent ?? callbackProblem(callback, settings.MODE === 'development');
  return rule === undefined ? undefined : refuse('callback_invalid', { rule });
}

/** A tenant's secret, made of ours: nothing to store, nothing to lose. `undefined` when no notices are sent here. */
export function webhookSecret(settings: Pick<Settings, 'WEBHOOK_KEY'>, tenant: string): string | undefined {
  if (!settings.WEBHOOK_KEY) return undefined;
  const key = Buffer.from(settings.WEBHOOK_KEY, 'base64');
  return `whsec_${createHmac('sha256', key).update(`auricle webhook 1\0${tenant}`).digest('base64')}`;
}

/** `webhook-signature` of a notice: `v1,` and base64 of HMAC-SHA-256 over id, seconds since 1970 and body. */
export function signNotice(secret: string, id: string, seconds: number, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`;
}
