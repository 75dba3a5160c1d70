import { MiB } from '../../../../shared/bytes.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';

/** One frame of a generated stream; a token takes a hundred bytes, an image of a model less than this. */
const GENERATED_FRAME_BYTES = MiB;

/**
 * The frames of a stream of server-sent events, without the empty line behind each. Refuses with `engine_failed` a
 * frame over `GENERATED_FRAME_BYTES`, and a stream that breaks or ends inside a frame; that is the last.
 */
export async function* frames(body: AsyncIterable<Uint8Array>): AsyncGenerator<Result<string>> {
  const failed = (detail: string) => no(refuse('engine_failed', undefined, detail));
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      const parts = text.split(/\r?\n\r?\n/);
      text = parts.pop() ?? '';
      for (const part of parts) if (part.trim() !== '') yield ok(part);
      if (text.length > GENERATED_FRAME_BYTES) return yield failed('a frame is too long');
    }
  } catch {
    return yield failed('the stream was cut off');
  }
  if (text.trim() !== '') yield failed('the stream ended inside a frame');
}

/** `data: {"error": …}` is how a stream that began well says that it failed. */
export function isErrorFrame(frame: string): boolean {
  const data = frame
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5));
  try {
    const value: unknown = JSON.parse(data.join('\n'));
    return typeof value === 'object' && value !== null && 'error' in value;
  } catch {
    return false;
  }
}
