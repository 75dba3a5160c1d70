import type { HttpRequest } from '@azure/functions';

/** A whole number in the query. */
export function readCount({ query }: Pick<HttpRequest, 'query'>, name: string): number | undefined {
  const text = query.get(name);
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
