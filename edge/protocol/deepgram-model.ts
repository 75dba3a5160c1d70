import { createHash } from 'node:crypto';

/** Returns the UUID of a model for Deepgram's clients, made of name and revision (RFC 9562 §5.8, version 8). */
export function modelUuid(model: string, revision: string): string {
  const hex = createHash('sha256').update(`${model} ${revision}`).digest('hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`];
  return [...parts, hex.slice(20, 32)].join('-');
}
