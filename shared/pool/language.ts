/**
 * Every comparison of languages is here (BCP 47, case-insensitive). A tag covers another that it starts at a hyphen:
 * `en` covers `en-GB`. Two tags are related when one covers the other: `en` and `en-GB` are, `en-US` and `en-GB` not.
 */

/** No language was named: nothing, an untouched form field, or the wish that the audio may tell. */
export const isOpen = (tag: string | undefined): tag is undefined | '' | 'auto' =>
  tag === undefined || tag === '' || tag.toLowerCase() === 'auto';

/**
 * Does a model that lists `served` know `wanted`: `en` serves `en-GB`, and `en` is served by `en-US`, but `en-US` does
 * not serve `en-GB`. No language, or `auto`, matches any.
 */
export function servesLanguage(served: readonly string[], wanted: string | undefined): boolean {
  return isOpen(wanted) || served.some((one) => related(one, wanted));
}

/** Does a token that lists `allowed` let its holder ask for a language: `*` is any, and `en` allows `en-GB`. */
export function allowsLanguage(allowed: readonly string[], wanted: string): boolean {
  return allowed.some((one) => one === '*' || covers(one, wanted));
}

/**
 * May a token that lists `allowed` use a model that lists `served` for `wanted`. Saying nothing is no way around the
 * list: then the model must know a language that is allowed, since what it hears will be in one that it knows.
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
  return spoken === 'zxx' || allowed.some((one) => one === '*' || related(one, spoken));
}

/** Can both be meant of one recording. Nothing, or `auto`, goes with anything. */
export function agreesOnLanguage(one: string | undefined, other: string | undefined): boolean {
  return isOpen(one) || isOpen(other) || related(one, other);
}

const related = (one: string, other: string): boolean => covers(one, other) || covers(other, one);

const covers = (one: string, other: string): boolean => {
  const tag = subtags(other);
  return subtags(one).every((part, at) => tag[at] === part);
};

const subtags = (tag: string): string[] => tag.toLowerCase().split('-');
