import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';

/**
 * Parses a text message as JSON. Parsing costs up to a hundred times what sending does, most of all for nested values.
 * Refuses a long text with `message_too_large`, unless `isAudio` and flat, and text that is not JSON with `frame_invalid`.
 */
export function readText(text: string, isAudio?: (text: string) => boolean): Result<unknown> {
  const limit = limits.streamControlCharacters.value;
  if (text.length > limit && !(isAudio?.(text) && isFlat(text))) return no(refuse('message_too_large', { limit }));
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
