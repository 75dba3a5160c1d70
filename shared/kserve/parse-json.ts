import { ok } from '../result.ts';
import { fault, type Read } from './fault.ts';

/**
 * Nesting of such JSON, checked before it is parsed since parsers recurse: a tensor has DIMENSIONS_MAX
 * levels.
 */
export const JSON_LEVELS_MAX = 64;
/**
 * Objects and members of such JSON: a full request has under 10,000, and 400,000 would take a parser two
 * seconds.
 */
export const JSON_MEMBERS_MAX = 16_384;
/** Arrays of such JSON, rows of nested tensors: parsed in a tenth of a second. */
export const JSON_ARRAYS_MAX = 262_144;

const decoder = new TextDecoder('utf-8', { fatal: true });

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Names the first bound that the JSON exceeds; `undefined` when it exceeds none. Does not validate syntax.
 */
function findExcess(json: Uint8Array): string | undefined {
  let [depth, open, named] = [0, 0, 0];
  let quoted = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (quoted) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT || byte === COLON) {
      if (byte !== COLON) depth++;
      if (byte === OPEN_ARRAY) open++;
      else named++;
      if (depth > JSON_LEVELS_MAX) return `is nested over ${JSON_LEVELS_MAX} levels`;
      if (named > JSON_MEMBERS_MAX) return `has over ${JSON_MEMBERS_MAX} objects and members`;
      if (open > JSON_ARRAYS_MAX) return `has over ${JSON_ARRAYS_MAX} arrays`;
    }
  }
  return undefined;
}

/**
 * Parses the JSON of a message. Levels, arrays, objects and members are bounded first: each costs a parser
 * far more than its bytes.
 */
export function parseJson(json: Uint8Array): Read<unknown> {
  const excess = findExcess(json);
  if (excess !== undefined) return fault(`the JSON part of the body ${excess}`);
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
