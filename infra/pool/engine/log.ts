/** One line of JSON. Names, counts and reasons only: no tensor, no transcript and no request body has a way in here. */
export function log(event: string, fields: Readonly<Record<string, string | number | boolean>> = {}): void {
  process.stdout.write(`${JSON.stringify({ at: new Date().toISOString(), part: 'engine', event, ...fields })}\n`);
}
