import { limits } from '../../shared/limits.ts';
import { agreesOnLanguage } from '../../shared/pool/language.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { readForm } from '../../shared/speech/openai-form.ts';
import type { CallerBody } from './body.ts';
import { FieldScanner } from './scan.ts';

/** What routing needs to know about a request whose body nobody at the edge parses. */
export interface Hints {
  readonly model: string;
  /** BCP 47 tag; absent when the caller did not say, or said `auto`. */
  readonly language: string | undefined;
  /** The class the caller wishes for, still to be clamped. */
  readonly class: string | undefined;
}

interface Told {
  readonly model: string | undefined;
  readonly language: string | undefined;
}

/**
 * Hints from the query or the headers, and otherwise from the body's own parts: of it, at most
 * `limits.heldBodyBytes` are looked through. Refuses with hints_missing, field_missing or field_invalid, or with what
 * went wrong with the body.
 */
export async function readHints(
  url: URL,
  headers: Headers,
  body: CallerBody,
  boundary: string,
): Promise<Result<Hints>> {
  const told: Told = {
    model: url.searchParams.get('model') ?? headers.get('x-auricle-model') ?? undefined,
    language: url.searchParams.get('language') ?? headers.get('x-auricle-language') ?? undefined,
  };
  const found = told.model === undefined ? await lookThrough(body, boundary, told) : ok(told);
  if (!found.ok) return found;
  const { model, language } = found.value;
  // The form's own rules, so that a hint is never accepted that the same field of the form would not be.
  const form = readForm({ ...(model !== undefined && { model: [model] }), ...(language && { language: [language] }) });
  if (!form.ok) return form;
  const wish = headers.get('x-auricle-class') ?? undefined;
  return ok({ model: form.value.model, language: form.value.language, class: wish });
}

async function lookThrough(body: CallerBody, boundary: string, told: Told): Promise<Result<Told>> {
  const names = told.language === undefined ? ['model', 'language'] : ['model'];
  const scanner = new FieldScanner(boundary, names);
  const intact = await body.hold((chunk) => {
    scanner.feed(chunk);
    return !scanner.done;
  });
  if (!intact && body.refusal) return { ok: false, refusal: body.refusal };
  const model = scanner.found.get('model');
  if (model === undefined && !body.replayable)
    return no(refuse('hints_missing', { limit: limits.heldBodyBytes.value }));
  return ok({ model, language: told.language ?? scanner.found.get('language') });
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
