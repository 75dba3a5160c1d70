import type { OutcomeHead } from '../../shared/jobs/outcome-head.ts';
import { openedTranscript } from '../../shared/jobs/upload-contract.ts';
import { allowsSpoken } from '../../shared/pool/language.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { renderTranscript } from '../../shared/speech/openai-answer.ts';
import type { ResponseFormat, TranscriptionForm } from '../../shared/speech/openai-form.ts';
import type { AnswerEvent, Segment, Transcript } from '../../shared/speech/transcript.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { CallerBody } from '../http/caller-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { readTranscriptEvent } from '../routing/read-event.ts';
import { Relay } from '../routing/relay.ts';
import { UPLOADS } from './kinds.ts';
import { admitReader, modelInZone, openResult } from './open-result.ts';

/** Twelve hours of fast speech; a transcript is in memory whole for formats that need it. */
const UPLOAD_WORDS_MAX = 3 * 65_536;

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
 * and its plaintext passes that agent and the edge only.
 */
export async function readTranscript(
  request: Request,
  context: RequestContext,
  { name: id }: PathParams,
): Promise<Response> {
  const claims = await admitReader(request, UPLOADS, ACTION, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const name = new URL(request.url).searchParams.get('format') ?? 'json';
  const format = Object.hasOwn(formats, name) ? formats[name] : undefined;
  if (!format) return refuseWith(refuse('field_invalid', { field: 'format', rule: 'must be json, text, srt or vtt' }));
  const address = { kind: UPLOADS, action: ACTION, id, below: ok('/open'), schema: openedTranscript };
  const result = await openResult(address, claims.value, context);
  if (!result.ok) return refuseWith(result.refusal);
  const { opened, session } = result.value;
  const { upload, read, zone } = opened;
  const { model, language } = upload;
  session.learn({ model, language });
  const head: OutcomeHead = { v: 1, task: 'outcome', upload: upload.id, run: upload.run, read };
  const selected = await modelInZone(zone, model, context);
  const hints = { model: selected, language: selected === model ? language : undefined };
  const agentRequest = { task: 'infer', hints, head, zones: [zone], read: readTranscriptEvent } as const;
  const relay = new Relay<AnswerEvent>(session, new CallerBody(null, context.runtime), agentRequest, context);
  relay.watch(request.signal);
  return answer(relay, format, claims.value.languages);
}

/** Form that requests every available detail. */
const form: Omit<TranscriptionForm, 'responseFormat'> = {
  model: '',
  language: undefined,
  prompt: undefined,
  temperature: 0,
  stream: false,
  logprobs: false,
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
      allowsSpoken(languages, language) ? ok(undefined) : no(refuse('language_forbidden', { language })),
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
      if (words > UPLOAD_WORDS_MAX) return no(refuse('engine_failed', undefined, 'too many words'));
    } else if (value.type === 'final') return ok({ segments, final: value });
  }
}
