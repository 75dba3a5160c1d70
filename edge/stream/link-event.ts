import { type LinkEvent, linkEvent } from '../../shared/stream/link.ts';

type Json = Readonly<Record<string, unknown>>;

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isTime = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value < Infinity;
const isShare = (value: unknown): value is number => isTime(value) && value <= 1;

function isWord(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { word, start, end, confidence } = value as Json;
  return typeof word === 'string' && isTime(start) && isTime(end) && isShare(confidence);
}

const isInterim = ({ index, start, end, text, words, stable, whole, confidence }: Json): boolean =>
  isCount(index) &&
  isTime(start) &&
  isTime(end) &&
  typeof text === 'string' &&
  Array.isArray(words) &&
  words.every(isWord) &&
  isCount(stable) &&
  (whole === undefined || isCount(whole)) &&
  isShare(confidence);

/**
 * Checks of frequent events by hand: an interpreted schema costs the edge more than sealing. Unknown members are
 * harmless, since the agent is attested.
 */
const frequent: Readonly<Record<string, (json: Json) => boolean>> = {
  keepalive: () => true,
  heard: ({ position, time }) => isCount(position) && isTime(time),
  interim: isInterim,
};

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Decodes the event of a record. Returns undefined for an event that no agent of this version sends. */
export function decodeLinkEvent(record: Uint8Array): LinkEvent | undefined {
  let json: unknown;
  try {
    json = JSON.parse(decoder.decode(record));
  } catch {
    return undefined;
  }
  if (typeof json !== 'object' || json === null) return undefined;
  const { type } = json as Json;
  const known = typeof type === 'string' && Object.hasOwn(frequent, type) ? frequent[type] : undefined;
  if (known) return known(json as Json) ? (json as LinkEvent) : undefined;
  return linkEvent.safeParse(json).data;
}
