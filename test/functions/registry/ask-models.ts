// Requests of the edge to the functions about models, on behalf of an operator.
import { HttpRequest } from '@azure/functions';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import type { Callers } from '../callers.ts';

export type Handler = (
  desk: ModelContext | undefined,
) => (request: HttpRequest) => Promise<{ status?: number; jsonBody?: unknown }>;

interface Question {
  readonly params?: Record<string, string> | undefined;
  readonly body?: unknown;
  readonly query?: Record<string, string> | undefined;
  readonly operate?: boolean | undefined;
}

/** Requests the model `reference-en` unless `params` name another; with a body it is a POST. */
export async function askModels(
  callers: Callers,
  desk: ModelContext,
  handler: Handler,
  { params = {}, body, query = {}, operate = true }: Question,
) {
  const request = new HttpRequest({
    url: 'http://functions/api/models',
    method: body === undefined ? 'GET' : 'POST',
    params: { model: 'reference-en', ...params },
    query,
    headers: { authorization: `Bearer ${await callers.edgeToken('acme', { operate })}` },
    ...(body !== undefined && { body: { string: JSON.stringify(body) } }),
  });
  const { status, jsonBody } = await handler(desk)(request);
  // biome-ignore lint/suspicious/noExplicitAny: whatever was answered.
  return { status, body: jsonBody as any };
}
