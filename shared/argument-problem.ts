/**
 * Returns the first sentence of a `parseArgs` error, without its full stop; the rest addresses programmers.
 */
export function argumentProblem(error: unknown): string {
  const [said = ''] = (error as Error).message.split(/\.\s/);
  const [, name] = /^Option '(?:-\w, )?(--[\w-]+)\b.*' argument is ambiguous$/.exec(said) ?? [];
  return name === undefined ? said : `${name} wants a value that does not begin with a dash`;
}
