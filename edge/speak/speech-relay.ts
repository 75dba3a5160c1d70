import { type BodyPiece, type CallEvent, readCallRecord } from '../../shared/kserve/call.ts';
import { ok, type Result } from '../../shared/result.ts';
import type { SpeakHead } from '../../shared/speech/speak.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { CallerBody } from '../http/caller-body.ts';
import { Session } from '../ledger/session.ts';
import type { SpeechOptions } from '../protocol/speech-request.ts';
import { Relay } from '../routing/relay.ts';

/** Scope and action of speech. */
export const SPEAK = 'synthesize';

export interface SpeechWork {
  readonly claims: Claims;
  /** Requested class, before it is clamped. */
  readonly class: string | undefined;
  readonly model: string;
  readonly options: SpeechOptions;
  readonly text: string;
}

/** Takes a slot of the tenant's allowance, records the attempt, and sends the text to an agent. */
export async function openSpeech(
  { claims, class: requested, model, options, text }: SpeechWork,
  context: RequestContext,
): Promise<Result<Relay<CallEvent | BodyPiece>>> {
  const requestClass = clampClass(requested, claims.priority);
  const subject = { action: SPEAK, model, language: undefined, class: requestClass };
  const session = await Session.begin(claims, subject, context);
  if (!session.ok) return session;
  const { voice, rate, encoding, container, sampleRate } = options;
  const head: SpeakHead = {
    ...{ v: 1, task: 'speak', model, encoding, container, sampleRate },
    ...(voice !== undefined && { voice }),
    ...(rate !== undefined && { rate }),
  };
  const bytes = new TextEncoder().encode(text);
  const owner = { class: requestClass, tenant: claims.tenant, length: bytes.length };
  const body = new CallerBody(new Blob([bytes]).stream(), context.runtime, owner);
  const hints = { model, language: undefined };
  return ok(new Relay(session.value, body, { task: SPEAK, hints, head, read: readCallRecord }, context));
}
