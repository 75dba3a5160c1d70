import { limits } from '../limits.ts';
import { ok } from '../result.ts';
import { fault, type Read } from './fault.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Whether something stands inside more than `most` arrays and objects. Says nothing of what is no JSON. */
function isDeeper(json: Uint8Array, most: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (quoted) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth++;
      if (depth > most) return true;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--;
  }
  return false;
}

/** What the JSON of a message says. Its nesting is bounded before it is parsed: a level costs far more than its byte. */
export function parseJson(json: Uint8Array): Read<unknown> {
  if (isDeeper(json, limits.callJsonLevels.value)) {
    return fault(`the JSON part of the body is nested over ${limits.callJsonLevels.value} levels`);
  }
  let text: string;
  try {
    text = decoder.decode(json);
  } catch {
    return fault('the JSON part of the body is not UTF-8');
  }
  try {
    return ok(JSON.parse(text));
  } catch {
    return fault('failed to parse the JSON part of the body');
  }
}
