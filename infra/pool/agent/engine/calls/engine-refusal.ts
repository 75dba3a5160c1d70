import { z } from 'zod';
import type { CallHead } from '../../../../../shared/kserve/call.ts';
import { type Refusal, refuse } from '../../../../../shared/refusal.ts';

const errorBody = z.object({ error: z.string() });

/** The engine's own sentence, in one line. */
function sentence(body: Uint8Array): string | undefined {
  try {
    const { data } = errorBody.safeParse(JSON.parse(new TextDecoder().decode(body)));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what an engine quotes may hold anything.
    return data?.error.replace(/[\u0000-\u001f\u007f]+/g, ' ');
  } catch {
    return undefined;
  }
}

/** Words of Triton for a sequence that it does not have, whatever stands around them. */
const UNSTARTED = /must specify the START flag/;

/** Words of Triton for a request that has waited too long. */
const EXPIRED = /timeout\b.*\bexpired/i;

/** Triton's message for a missing version of a loaded model. */
const VERSIONLESS = /version \d+ is not found/;

interface EngineAnswer {
  readonly status: number;
  readonly body: Uint8Array;
}

interface Inference {
  readonly sequence?: string | undefined;
  /** The caller's own timeout once it has passed, µs; 0 before. */
  readonly passedMicros?: number;
}

/**
 * Translates a refusal of the engine for the caller. A fault of the request keeps the engine's message,
 * which may quote the request and so goes to its sender only; a fault of the engine hides its message.
 */
export function engineRefusal(
  { status, body }: EngineAnswer,
  { model, version }: Pick<CallHead, 'model' | 'version'>,
  { sequence, passedMicros = 0 }: Inference = {},
): Refusal {
  const detail = `engine status ${status}`;
  const rule = sentence(body) ?? 'the engine refuses the request';
  if (status === 400 && sequence !== undefined && UNSTARTED.test(rule)) {
    return refuse('sequence_unknown', { sequence, model }, detail);
  }
  if (status === 400) return refuse('tensors_invalid', { rule }, detail);
  if (status === 501) return refuse('tensors_unsupported', { rule }, detail);
  if (status === 503 && passedMicros > 0 && EXPIRED.test(rule)) {
    return refuse('timeout_passed', { microseconds: passedMicros }, detail);
  }
  if (status === 503) return refuse('pool_busy', undefined, detail);
  if (status !== 404) return refuse('engine_failed', undefined, detail);
  // A whole model that is gone was served a moment ago: another agent may still have it.
  return version !== undefined && VERSIONLESS.test(rule)
    ? refuse('version_unknown', { model, version }, detail)
    : refuse('misdirected', undefined, detail);
}
