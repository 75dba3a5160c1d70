/** What Node's `parseArgs` says of a command line, in a sentence without an end: the rest of it is for programmers. */
export function argumentProblem(error: unknown): string {
  const [said = ''] = (error as Error).message.split(/\.\s/);
  const [, name] = /^Option '(?:-\w, )?(--[\w-]+)\b.*' argument is ambiguous$/.exec(said) ?? [];
  return name === undefined ? said : `${name} wants a value that does not begin with a dash`;
}
