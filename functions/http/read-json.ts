// Parser of JSON request bodies.
import type { HttpRequest } from '@azure/functions';

/** Returns the parsed body; `undefined` for invalid JSON, which no schema accepts. */
export async function readJson(request: Pick<HttpRequest, 'json'>): Promise<unknown> {
  try {
    return await request.json();
  } catch {
    return undefined;
  }
}
