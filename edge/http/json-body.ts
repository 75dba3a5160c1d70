import { KiB } from '../../shared/bytes.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { BODY_IDLE_MS } from '../limits.ts';
import { discardSource, openSource } from './body-source.ts';

/** JSON request of the audio interface: none needs more. */
const JSON_BODY_BYTES = 64 * KiB;

/**
 * A JSON body, small unless `limit` says otherwise; an empty one is `{}`. Refuses with `body_too_large`, `client_slow`
 * or `json_invalid`.
 */
export async function readJson(
  request: Request,
  context: RequestContext,
  limit: number = JSON_BODY_BYTES,
): Promise<Result<Readonly<Record<string, unknown>>>> {
  const source = request.body ? openSource(request.body) : undefined;
  const { runtime } = context;
  if (source) context.discardBody = () => discardSource(source, runtime);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  let bytes = 0;
  try {
    for (;;) {
      const step = source ? await within(source.read(), BODY_IDLE_MS, runtime) : undefined;
      if (step === late) return no(refuse('client_slow', { limit: BODY_IDLE_MS / 1_000 }));
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
