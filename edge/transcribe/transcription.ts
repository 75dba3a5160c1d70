import { ok, type Result } from '../../shared/result.ts';
import type { AnswerEvent } from '../../shared/speech/transcript.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import type { Hints } from '../protocol/hints.ts';
import type { Target } from '../routing/family.ts';
import { resolveTarget } from '../routing/model-names.ts';
import { readTranscriptEvent } from '../routing/read-event.ts';
import type { AgentRequest, Detected } from '../routing/relay.ts';

/** Members of a head that do not depend on the model. */
type HeadFields = Readonly<Record<string, unknown>>;

/**
 * Returns a transcription as agents get it. `hints.model` may name a family: an open language is then detected by the
 * first agent, and the request is redirected once, to the member that serves it.
 */
export async function transcription(
  { model: name, language, languages }: Hints,
  head: HeadFields,
  claims: Claims,
  context: RequestContext,
): Promise<Result<AgentRequest<AnswerEvent>>> {
  const resolve = (spoken: string | undefined) => resolveTarget({ name, language: spoken, languages }, claims, context);
  const redirect = async (detected: Detected): Promise<Result<AgentRequest<AnswerEvent>>> => {
    const member = await resolve(detected.language);
    return member.ok ? ok(requestOf(member.value, head, { detected })) : member;
  };
  const target = await resolve(language);
  return target.ok ? ok(requestOf(target.value, head, { redirect })) : target;
}

interface Detection {
  readonly redirect?: AgentRequest<AnswerEvent>['redirect'];
  readonly detected?: Detected;
}

function requestOf(
  { model, language, family, languages }: Target,
  head: HeadFields,
  { redirect, detected }: Detection,
): AgentRequest<AnswerEvent> {
  const detects = family !== undefined;
  return {
    task: 'transcribe',
    hints: { model, language, ...(detects && { detects }) },
    head: {
      ...{ v: 1, task: 'transcribe', model, ...head },
      ...(language !== undefined && { language }),
      ...(detects && { detect: true, ...(languages && { languages }) }),
    },
    ...(detects && { redirect }),
    read: detected ? readWith(detected) : readTranscriptEvent,
    textOf: (event) => (event.type === 'segment' ? event.text : undefined),
  };
}

/** Adds the confidence of the detection to the events of the agent that did not detect. */
const readWith =
  ({ confidence }: Detected) =>
  (record: Uint8Array): AnswerEvent | undefined => {
    const event = readTranscriptEvent(record);
    return event?.type === 'final' ? { ...event, languageConfidence: confidence } : event;
  };
