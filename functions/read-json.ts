// The body of a request as JSON.
import type { HttpRequest } from '@azure/functions';

/** `undefined` when it is none, which no schema takes. */
export async function readJson(request: Pick<HttpRequest, 'json'>): Promise<unknown> {
  try {
    return await request.json();
  } catch {
    return undefined;
  }
}
