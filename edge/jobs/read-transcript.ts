import { limits } from '../../shared/limits.ts';
import { mayHear } from '../../shared/pool/language.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { renderTranscript } from '../../shared/speech/openai-answer.ts';
import type { ResponseFormat, TranscriptionForm } from '../../shared/speech/openai-form.ts';
import { readTranscriptEvent } from '../../shared/speech/read-event.ts';
import type { AnswerEvent, Segment, Transcript } from '../../shared/speech/transcript.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import { type OpenedTranscript, openedTranscript } from '../../shared/upload/contract.ts';
import type { OutcomeHead } from '../../shared/upload/outcome-head.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { CallerBody } from '../http/caller-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refusedWith, Session } from '../ledger/session.ts';
import { Relay } from '../routing/relay.ts';
import { readSnapshots } from '../routing/snapshot.ts';
import { callJob } from './find-job.ts';
import { UPLOADS } from './kinds.ts';

const ACTION = 'upload.transcript';

/**
 * Formats of the query. `json` has words and segments with their times; the others are those of
 * transcriptions.
 */
const formats: Readonly<Record<string, ResponseFormat>> = {
  json: 'verbose_json',
  text: 'text',
  srt: 'srt',
  vtt: 'vtt',
};

/**
 * Answers `GET /v1/uploads/{id}/transcript?format=`. The transcript lies sealed in storage; an agent of its zone opens it,
 * and its plaintext passes that agent and the edge only. A token that demands client sealing is refused: no route hands
 * over what a client could open by itself.
 */
export async function readTranscript(
  request: Request,
  context: RequestContext,
  { name: id }: PathParams,
): Promise<Response> {
  const claims = await admit(request, UPLOADS.scope, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  if (claims.value.sealing === 'client') {
    const refusal = refuse('sealing_required');
    recordDenial(claims.value, ACTION, refusal, context);
    return refuseWith(refusal);
  }
  const asked = new URL(request.url).searchParams.get('format') ?? 'json';
  const format = Object.hasOwn(formats, asked) ? formats[asked] : undefined;
  if (!format) return refuseWith(refuse('field_invalid', { field: 'format', rule: 'must be json, text, srt or vtt' }));
  const subject = { action: ACTION, model: undefined, language: undefined };
  const requestClass = clampClass('interactive', claims.value.priority);
  const session = await Session.begin(claims.value, { ...subject, class: requestClass }, context);
  if (!session.ok) {
    recordDenial(claims.value, ACTION, session.refusal, context);
    return refuseWith(session.refusal);
  }
  let opened: Result<OpenedTranscript>;
  try {
    opened = await open(id, claims.value, context);
  } catch (error) {
    await session.value.end({ ...refusedWith(refuse('internal')), bytes: 0 });
    throw error;
  }
  if (!opened.ok) {
    await session.value.end({ ...refusedWith(opened.refusal), bytes: 0 });
    return refuseWith(opened.refusal);
  }
  const relay = await ask(opened.value, session.value, context);
  relay.watch(request.signal);
  return answer(relay, format, claims.value.languages);
}

async function open(id: string, claims: Claims, context: RequestContext): Promise<Result<OpenedTranscript>> {
  const found = await callJob({ kind: UPLOADS, id, method: 'POST', below: '/open' }, openedTranscript, claims, context);
  if (!found.ok) return found;
  const { value } = found.value;
  if (!value) return no(refuse('uploads_unavailable', undefined, 'nothing was said'));
  // A transcript is opened in its own zone only.
  return claims.zones.includes(value.zone) ? ok(value) : no(refuse('residency_mismatch'));
}

/**
 * Calls an agent of the transcript's zone. Every agent of the zone holds the key, whatever models it serves.
 */
async function ask({ upload, read, zone }: OpenedTranscript, session: Session, context: RequestContext) {
  const { settings, env, runtime } = context;
  const { model, language } = upload;
  session.learn({ model, language });
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const served = snapshots.filter((one) => one.zone === zone).flatMap((one) => one.entries);
  const names = served.flatMap(({ description }) => description.models.map(({ name }) => name));
  // When no agent serves the model any more, any other model selects an agent of the zone.
  const door = names.includes(model) ? model : (names[0] ?? model);
  const head: OutcomeHead = { v: 1, task: 'outcome', upload: upload.id, run: upload.run, read };
  const body = new CallerBody(null, runtime);
  const hints = { model: door, language: door === model ? language : undefined };
  const agentRequest = { task: 'infer', hints, head, zones: [zone], read: readTranscriptEvent } as const;
  return new Relay<AnswerEvent>(session, body, agentRequest, context);
}

/** Form that requests every available detail. */
const form: Omit<TranscriptionForm, 'responseFormat'> = {
  model: '',
  language: undefined,
  prompt: undefined,
  temperature: 0,
  stream: false,
  granularities: ['segment', 'word'],
};

async function answer(
  relay: Relay<AnswerEvent>,
  format: ResponseFormat,
  languages: readonly string[],
): Promise<Response> {
  try {
    const transcript = await collect(relay);
    if (!transcript.ok) {
      await relay.end(transcript);
      return refuseWith(transcript.refusal);
    }
    const { contentType, body } = renderTranscript(transcript.value, { ...form, responseFormat: format });
    // The audio was billed when it was recognised; reading is free.
    const used = { ...transcript.value.final, durationSeconds: 0 };
    const ended = await relay.end(ok(used), ({ language }) =>
      mayHear(languages, language) ? ok(undefined) : no(refuse('language_forbidden', { language })),
    );
    if (!ended.ok) return refuseWith(ended.refusal);
    return new Response(body, { headers: { 'content-type': contentType, 'cache-control': 'no-store' } });
  } catch (error) {
    return refuseWith(await relay.broke(error));
  }
}

async function collect(relay: Relay<AnswerEvent>): Promise<Result<Transcript>> {
  let segments: Segment[] = [];
  let words = 0;
  for (;;) {
    const event = await relay.next();
    if (!event.ok) return event;
    const { value } = event;
    if (value.type === 'ready') {
      segments = [];
      words = 0;
    } else if (value.type === 'segment') {
      segments.push(value);
      words += value.words.length;
      if (words > limits.uploadWords.value) return no(refuse('engine_failed', undefined, 'too many words'));
    } else if (value.type === 'final') return ok({ segments, final: value });
  }
}
