/**
 * Every comparison of languages is here (BCP 47, canonical form). A tag covers another that it starts at a hyphen:
 * `en` covers `en-GB`. Two tags are related when one covers the other: `en` and `en-GB` are, `en-US` and `en-GB` not.
 */

/** Tags whose subtags are cached: callers repeat few. */
const CACHED_TAGS_MAX = 1_024;

/** Language of a recording without speech (BCP 47: no linguistic content). */
export const NO_LANGUAGE = 'zxx';

/** Reports whether no language is named: none, an empty form field, or `auto`. */
export const isOpen = (tag: string | undefined): tag is undefined | '' | 'auto' =>
  tag === undefined || tag === '' || tag.toLowerCase() === 'auto';

/**
 * Reports whether a model that lists `served` knows `wanted`: `en` serves `en-GB`, and `en` is served by
 * `en-US`, but `en-US` does not serve `en-GB`. No language, or `auto`, matches any.
 */
export function servesLanguage(served: readonly string[], wanted: string | undefined): boolean {
  return isOpen(wanted) || served.some((one) => related(one, wanted));
}

/** Reports whether a token that lists `allowed` permits a language: `*` is any, and `en` allows `en-GB`. */
export function allowsLanguage(allowed: readonly string[], wanted: string): boolean {
  return allowed.some((one) => one === '*' || covers(one, wanted));
}

/**
 * Reports whether a token that lists `allowed` may use a model that lists `served` for `wanted`. Without
 * `wanted` the model must know an allowed language, since it recognises one that it knows.
 */
export function allowsModel(
  allowed: readonly string[],
  served: readonly string[],
  wanted: string | undefined,
): boolean {
  return isOpen(wanted) ? served.some((one) => allowsSpoken(allowed, one)) : allowsLanguage(allowed, wanted);
}

/**
 * Reports whether `allowed` covers words spoken in `spoken`. Models are less exact than lists: `en` for `en-GB`. What
 * has no linguistic content (`zxx`) is in no language that a list could forbid.
 */
export function allowsSpoken(allowed: readonly string[], spoken: string): boolean {
  return spoken === NO_LANGUAGE || allowed.some((one) => one === '*' || related(one, spoken));
}

/** Reports whether two tags can describe one recording. None, or `auto`, agrees with any. */
export function agreesOnLanguage(one: string | undefined, other: string | undefined): boolean {
  return isOpen(one) || isOpen(other) || related(one, other);
}

const related = (one: string, other: string): boolean => covers(one, other) || covers(other, one);

const covers = (one: string, other: string): boolean => {
  const tag = subtags(other);
  return subtags(one).every((part, at) => tag[at] === part);
};

const known = new Map<string, readonly string[]>();

/** Returns the subtags of the canonical form in lower case, with a cache of at most `CACHED_TAGS_MAX` tags. */
function subtags(tag: string): readonly string[] {
  const before = known.get(tag);
  if (before) return before;
  const parts = canonicalTag(tag).toLowerCase().split('-');
  if (known.size >= CACHED_TAGS_MAX) known.clear();
  known.set(tag, parts);
  return parts;
}

/** A prefix with an extended language subtag (RFC 5646 §2.2.2). ECMA-402 refuses such a tag. */
const EXTENDED = /^(?:ar|kok|lv|ms|sgn|sw|uz|zh)-(?=[a-z]{3}(?:-|$))/i;

/**
 * Returns the canonical form of a tag (RFC 5646 §4.5): `yue` for `zh-yue`, `en` for `eng`, `zh` for `cmn`. A tag that
 * is not well-formed stays as it is.
 */
export function canonicalTag(tag: string): string {
  const preferred = tag.replace(EXTENDED, '');
  try {
    return Intl.getCanonicalLocales(preferred)[0] ?? preferred;
  } catch {
    return preferred;
  }
}
