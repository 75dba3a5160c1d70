/**
 * Does a model that lists `served` (BCP 47) know `wanted`: one is the other or starts it at a hyphen, so `en` serves
 * `en-GB`, and `en` is served by `en-US`, but `en-US` does not serve `en-GB`. No language, or `auto`, matches any.
 */
export function servesLanguage(served: readonly string[], wanted: string | undefined): boolean {
  if (wanted === undefined || wanted.toLowerCase() === 'auto') return true;
  const tag = subtags(wanted);
  return served.some((one) => subtags(one).every((part, at) => tag[at] === undefined || tag[at] === part));
}

const subtags = (tag: string): string[] => tag.toLowerCase().split('-');
