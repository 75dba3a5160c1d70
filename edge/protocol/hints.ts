import { agreesOnLanguage } from '../../shared/pool/language.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { tagOfLanguage } from '../../shared/speech/language.ts';
import { BUFFERED_BODY_BYTES, FORM_FIELD_BYTES } from '../../shared/speech/limits.ts';
import { readKnownForm } from '../../shared/speech/openai-form.ts';
import { type CallerBody, HINTS_BYTES } from '../http/caller-body.ts';
import { MultipartReader } from '../http/multipart.ts';
import type { ModelNames } from '../routing/model-names.ts';

/** Facts for routing a request whose body the edge does not parse. */
export interface Hints {
  readonly model: string;
  /** BCP 47 tag; absent when the caller named none, or `auto`. */
  readonly language: string | undefined;
  /** Tags of a list: the language is one of them. */
  readonly languages?: readonly string[] | undefined;
  /** Requested class, before it is clamped. */
  readonly class: string | undefined;
  /** Prompt of a form, where it was among the bytes read. */
  readonly prompt?: string | undefined;
}

/** Model, language and class as query and headers name them. A language may still be `auto`. */
export interface RequestHints {
  readonly model: string | undefined;
  readonly language: string | undefined;
  readonly languages?: readonly string[] | undefined;
  readonly class: string | undefined;
}

/** Stands for a model that is not known yet where only the language is checked. */
const ANY_MODEL = 'any';

/** Reads query and headers, before a byte of the body was read. An empty value is absent. Refuses with `field_invalid`. */
export function readRequestHints(address: string | URL, headers: Headers): Result<RequestHints> {
  const query = String(address).includes('?') ? new URL(address).searchParams : undefined;
  const model = query?.get('model') || headers.get('x-auricle-model') || undefined;
  const language = query?.get('language') || headers.get('x-auricle-language') || undefined;
  const requested = headers.get('x-auricle-class') ?? undefined;
  if (model === undefined && language === undefined) return ok({ model, language, class: requested });
  // The form's own rules, so that a hint is never accepted that the same field of the form would not be.
  const form = readKnownForm({ model: [model ?? ANY_MODEL], ...(language && { language: [language] }) });
  if (!form.ok) return form;
  const { language: tag = 'auto', languages } = form.value;
  return ok({ model, language: language && tag, languages, class: requested });
}

/**
 * Completes what query and headers name from the first `HINTS_BYTES` of the form, and a form without a model by
 * `byDefault`. Refuses with `hints_missing`, `field_missing` or `field_invalid`, or as the body does.
 */
export async function readHints(
  hints: RequestHints,
  body: CallerBody,
  { boundary, byDefault }: { readonly boundary: string; readonly byDefault: string | undefined },
): Promise<Result<Hints>> {
  if (hints.model !== undefined) return hintsOf(hints);
  const names = ['model', 'prompt', ...(hints.language === undefined ? ['language'] : [])];
  const { found, isCut } = await findFields(body.prefix(HINTS_BYTES), boundary, names);
  if (body.refusal) return no(body.refusal);
  const model = found.get('model') ?? byDefault;
  // A form that has ended names no model; a longer one may name it later.
  if (model === undefined && isCut && body.received > HINTS_BYTES)
    return no(refuse('hints_missing', { limit: HINTS_BYTES }));
  const read = hintsOf({ ...hints, model, language: hints.language ?? found.get('language') });
  return read.ok ? ok({ ...read.value, prompt: found.get('prompt') }) : read;
}

function hintsOf({ model, language, languages, class: requested }: RequestHints): Result<Hints> {
  const form = readKnownForm({
    ...(model !== undefined && { model: [model] }),
    ...(language && { language: [language] }),
  });
  if (!form.ok) return form;
  const { languages: listed = languages } = form.value;
  return ok({ model: form.value.model, language: form.value.language, languages: listed, class: requested });
}

/**
 * Finds the first value of each name among the text parts of a form, and reads no further than it has to: behind
 * `BUFFERED_BODY_BYTES` for the model alone. `isCut` reports that it stopped before the end of the form. A value over
 * `FORM_FIELD_BYTES` is not found: the agent refuses it.
 */
export async function findFields(
  chunks: AsyncGenerator<Uint8Array>,
  boundary: string,
  names: readonly string[],
): Promise<{ readonly found: ReadonlyMap<string, string>; readonly isCut: boolean }> {
  const found = new Map<string, string>();
  let isCut = false;
  let length = 0;
  const form = new MultipartReader(async () => {
    const enough = length >= BUFFERED_BODY_BYTES && found.has('model');
    const { value } = enough ? { value: undefined } : await chunks.next();
    isCut ||= !value;
    length += value?.byteLength ?? 0;
    return ok(value ?? undefined);
  }, boundary);
  const wanted = new Set(names);
  while ([...wanted].some((name) => !found.has(name))) {
    const head = await form.next();
    if (!head.ok || !head.value) break;
    const { name, isFile } = head.value;
    // The agent reads a prompt before the file itself.
    if (isFile && found.has('model')) wanted.delete('prompt');
    if (isFile || !names.includes(name) || found.has(name)) continue;
    const text = await form.text(FORM_FIELD_BYTES);
    if (!text.ok) break;
    if (text.value !== undefined) found.set(name, text.value);
  }
  await chunks.return(undefined);
  return { found, isCut };
}

/** Checks the form that the agent read against the hints: routing and permission were decided on them. */
export function checkPromise(
  fields: Readonly<Record<string, readonly string[]>>,
  hints: Hints,
  names: ModelNames,
): Result<undefined> {
  const model = fields.model?.[0] || hints.model;
  if (model !== hints.model && names(model) !== hints.model) return no(refuse('hints_conflict', { field: 'model' }));
  if (!agreesOnLanguage(hints.language, tagOfLanguage(fields.language?.[0] ?? ''))) {
    return no(refuse('hints_conflict', { field: 'language' }));
  }
  return ok(undefined);
}
