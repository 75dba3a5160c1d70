import { limits } from '../limits.ts';
import { ok } from '../result.ts';
import { fault, type Read } from './fault.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

const { callJsonLevels: levels, callJsonMembers: members, callJsonArrays: arrays } = limits;

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
      if (depth > levels.value) return `is nested over ${levels.value} levels`;
      if (named > members.value) return `has over ${members.value} objects and members`;
      if (open > arrays.value) return `has over ${arrays.value} arrays`;
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
