/** Logs that a Durable Object's disk is full. Alarm on this line: the edge records nothing, so it serves nothing. */
export const logFull = (request: string): void => console.error(JSON.stringify({ event: 'storage_full', request }));
