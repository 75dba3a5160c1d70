import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';

/**
 * What a client says in text, as JSON. Reading it costs up to a hundred times what sending it does, most of all where it
 * is nested, so what is long is refused unread: with `message_too_large`, but for what `isSound`, which may be long and
 * has next to nothing in brackets. What is no JSON is `frame_invalid`.
 */
export function readText(text: string, isSound?: (text: string) => boolean): Result<unknown> {
  const limit = limits.streamControlCharacters.value;
  if (text.length > limit && !(isSound?.(text) && isFlat(text))) return no(refuse('message_too_large', { limit }));
  try {
    return ok(JSON.parse(text));
  } catch {
    return no(refuse('frame_invalid', { rule: 'it is not JSON' }));
  }
}

function isFlat(text: string): boolean {
  let left = limits.streamSoundBrackets.value;
  for (const bracket of '[{') {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      left -= 1;
      if (left < 0) return false;
    }
  }
  return true;
}
