import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { discardSource, openSource } from './body-source.ts';

/**
 * A JSON body, small unless `limit` says otherwise; an empty one is `{}`. Refuses with `body_too_large`, `client_slow`
 * or `json_invalid`.
 */
export async function readJson(
  request: Request,
  context: RequestContext,
  limit: number = limits.jsonBodyBytes.value,
): Promise<Result<Readonly<Record<string, unknown>>>> {
  const source = request.body ? openSource(request.body) : undefined;
  const { runtime } = context;
  if (source) context.discardBody = () => discardSource(source, runtime);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  let bytes = 0;
  try {
    for (;;) {
      const step = source ? await within(source.read(), limits.bodyIdleMs.value, runtime) : undefined;
      if (step === late) return no(refuse('client_slow', { limit: limits.bodyIdleMs.value / 1_000 }));
      if (!step) break;
      bytes += step.byteLength;
      if (bytes > limit) return no(refuse('body_too_large', { limit }));
      text += decoder.decode(step, { stream: true });
    }
    const json: unknown = JSON.parse((text + decoder.decode()).trim() || '{}');
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return ok({ ...json });
  } catch {
    // Not UTF-8, not JSON, or a connection that broke: nothing that could be read.
  }
  return no(refuse('json_invalid'));
}
