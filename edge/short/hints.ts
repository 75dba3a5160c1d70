import { limits } from '../../shared/limits.ts';
import { agreesOnLanguage } from '../../shared/pool/language.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { readKnownForm } from '../../shared/speech/openai-form.ts';
import type { CallerBody } from './body.ts';
import { findFields } from './find-fields.ts';
import { FieldScanner } from './scan.ts';

/** What routing needs to know about a request whose body nobody at the edge parses. */
export interface Hints {
  readonly model: string;
  /** BCP 47 tag; absent when the caller did not say, or said `auto`. */
  readonly language: string | undefined;
  /** The class the caller wishes for, still to be clamped. */
  readonly class: string | undefined;
}

/** The same as far as query and headers say it. A language may still be `auto` or empty. */
export interface Told {
  readonly model: string | undefined;
  readonly language: string | undefined;
  readonly class: string | undefined;
}

/** Stands for a model that is not told yet where only the language is checked. */
const ANY_MODEL = 'any';

/** What query and headers say, before a byte of the body was read. Refuses with field_invalid. */
export function readTold(address: string | URL, headers: Headers): Result<Told> {
  const query = String(address).includes('?') ? new URL(address).searchParams : undefined;
  const model = query?.get('model') ?? headers.get('x-auricle-model') ?? undefined;
  const language = query?.get('language') ?? headers.get('x-auricle-language') ?? undefined;
  const wish = headers.get('x-auricle-class') ?? undefined;
  if (model === undefined && !language) return ok({ model, language, class: wish });
  // The form's own rules, so that a hint is never accepted that the same field of the form would not be.
  const form = readKnownForm({ model: [model ?? ANY_MODEL], ...(language && { language: [language] }) });
  return form.ok ? ok({ model, language, class: wish }) : form;
}

/**
 * The hints: what was told, and otherwise the body's own parts: of it, the first `limits.heldBodyBytes` are looked
 * through. Refuses with hints_missing, field_missing or field_invalid, or with what went wrong with the body.
 */
export function readHints(told: Told, body: CallerBody, boundary: string): Result<Hints> | Promise<Result<Hints>> {
  return told.model === undefined ? lookThrough(body, boundary, told) : hintsOf(told);
}

/** What the last form was, whose hints are those of the next one more often than not. */
let last: { readonly told: Pick<Told, 'model' | 'language'>; readonly hints: Hints } | undefined;

function hintsOf(told: Told): Result<Hints> {
  const { model, language, class: wish } = told;
  const same = last && last.told.model === model && last.told.language === language && last.hints.class === wish;
  if (same) return ok((last as NonNullable<typeof last>).hints);
  const form = readKnownForm({
    ...(model !== undefined && { model: [model] }),
    ...(language && { language: [language] }),
  });
  if (!form.ok) return form;
  const hints = { model: form.value.model, language: form.value.language, class: wish };
  last = { told: { model, language }, hints };
  return ok(hints);
}

/** At once when the body is here. */
function lookThrough(body: CallerBody, boundary: string, told: Told): Result<Hints> | Promise<Result<Hints>> {
  const filling = body.fill();
  if (filling) return filling.then(() => lookThrough(body, boundary, told));
  const names = told.language === undefined ? ['model', 'language'] : ['model'];
  let values: readonly (string | undefined)[] | undefined;
  let scanner: FieldScanner | undefined;
  const look = (chunk: Uint8Array) => {
    if (!scanner) {
      values = findFields(chunk, boundary, names);
      if (values) return false;
      scanner = new FieldScanner(boundary, names);
    }
    scanner.feed(chunk);
    return !scanner.done;
  };
  const found = (intact: boolean) => {
    if (!intact && body.refusal) return no(body.refusal);
    const [model, language] = values ?? names.map((name) => scanner?.found.get(name));
    // A form that has ended, whatever follows it, will never name one; a longer one may, behind what is looked at.
    if (model === undefined && !scanner?.done && !body.replayable)
      return no(refuse('hints_missing', { limit: limits.heldBodyBytes.value }));
    return hintsOf({ class: told.class, model, language: told.language ?? language });
  };
  return body.ended ? found(body.lookAt(look)) : body.hold(look).then(found);
}

/** The form the agent read must be the one the hints promised: routing and permission were decided on them. */
export function checkPromise(fields: Readonly<Record<string, readonly string[]>>, hints: Hints): Result<undefined> {
  const model = fields.model?.[0];
  if (model !== undefined && model !== hints.model) return no(refuse('hints_conflict', { field: 'model' }));
  if (!agreesOnLanguage(hints.language, fields.language?.[0])) {
    return no(refuse('hints_conflict', { field: 'language' }));
  }
  return ok(undefined);
}
