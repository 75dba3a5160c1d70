import { KiB } from '../../shared/bytes.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';

/**
 * One text message: the largest of /v1/stream is a start with a resume token. Sound of /v1/realtime may be
 * longer.
 */
export const STREAM_CONTROL_CHARACTERS = 32 * KiB;
/**
 * Brackets and braces in a text of sound over STREAM_CONTROL_CHARACTERS: clients have up to four, and 500,000
 * take JSON.parse 100 ms.
 */
const STREAM_SOUND_BRACKETS_MAX = 64;

/**
 * Parses a text message as JSON. Parsing costs up to a hundred times what sending does, most of all for nested values.
 * Refuses a long text with `message_too_large`, unless `isAudio` and flat, and text that is not JSON with `frame_invalid`.
 */
export function readText(text: string, isAudio?: (text: string) => boolean): Result<unknown> {
  const limit = STREAM_CONTROL_CHARACTERS;
  if (text.length > limit && !(isAudio?.(text) && isFlat(text))) return no(refuse('message_too_large', { limit }));
  try {
    return ok(JSON.parse(text));
  } catch {
    return no(refuse('frame_invalid', { rule: 'it is not JSON' }));
  }
}

function isFlat(text: string): boolean {
  let left = STREAM_SOUND_BRACKETS_MAX;
  for (const bracket of '[{') {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      left -= 1;
      if (left < 0) return false;
    }
  }
  return true;
}
