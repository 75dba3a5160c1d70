import { limits } from '../../shared/limits.ts';

/** How nearly every client writes the head of a text part. */
const HEAD = /\r\nContent-Disposition: form-data; name="([\w-]{1,64})"\r\n\r\n/y;
const NOT_ASCII = /[^\0-\x7f]/;

/**
 * The values of `names`, in their order, when all are among the first parts of a form that is written in the usual way:
 * what `FieldScanner` would find, at a third of its cost. `undefined` when that cannot be seen from its first bytes.
 */
export function findFields(start: Uint8Array, boundary: string, names: readonly string[]): string[] | undefined {
  const shown = Math.min(start.byteLength, limits.formStartBytes.value);
  const text = Buffer.from(start.buffer, start.byteOffset, shown).toString('latin1');
  const delimiter = `\r\n--${boundary}`;
  if (!text.startsWith(delimiter.slice(2))) return undefined;
  const found: (string | undefined)[] = names.map(() => undefined);
  let missing = names.length;
  for (let at = delimiter.length - 2; missing > 0; ) {
    HEAD.lastIndex = at;
    const name = HEAD.exec(text)?.[1] ?? '';
    // An empty part ends in the line end of its own head.
    const from = HEAD.lastIndex - 2;
    const end = from < at ? -1 : text.indexOf(delimiter, from);
    if (end < 0) return undefined;
    const wanted = names.indexOf(name);
    if (wanted >= 0 && found[wanted] === undefined) {
      const value = text.slice(from + 2, end);
      if (end - from > limits.formFieldBytes.value || NOT_ASCII.test(value)) return undefined;
      found[wanted] = value;
      missing -= 1;
    }
    at = end + delimiter.length;
  }
  return found as string[];
}
