/**
 * Writes one line of JSON. Names, counts and reasons only: no tensor, transcript or request body can enter.
 */
export function log(event: string, fields: Readonly<Record<string, string | number | boolean>> = {}): void {
  process.stdout.write(`${JSON.stringify({ at: new Date().toISOString(), part: 'engine', event, ...fields })}\n`);
}
