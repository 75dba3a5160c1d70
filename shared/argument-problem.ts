/**
 * Returns the first sentence of a `parseArgs` error, without its full stop; the rest addresses programmers.
 */
export function argumentProblem(error: unknown): string {
  const [text = ''] = (error as Error).message.split(/\.\s/);
  const [, name] = /^Option '(?:-\w, )?(--[\w-]+)\b.*' argument is ambiguous$/.exec(text) ?? [];
  return name === undefined ? text : `${name} wants a value that does not begin with a dash`;
}
