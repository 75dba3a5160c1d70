/** Notes a bug: its name and place, never its message, which may quote what it choked on. */
export function logBug(request: string, error: unknown): void {
  const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: undefined };
  const place = stack
    ?.split('\n')
    .slice(1, 4)
    .map((line) => line.trim());
  console.error(JSON.stringify({ event: 'bug', request, error: name, place }));
}
