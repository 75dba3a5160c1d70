import { type LinkEvent, linkEvent } from './link.ts';

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
 * The events that come all the time, looked at by hand: a schema that is interpreted costs the edge more than sealing
 * does. Members that the schema does not know are the agent's, which is attested, and do no harm.
 */
const often: Readonly<Record<string, (json: Json) => boolean>> = {
  keepalive: () => true,
  heard: ({ position, time }) => isCount(position) && isTime(time),
  interim: isInterim,
};

const decoder = new TextDecoder('utf-8', { fatal: true });

/** What a record of an agent says; `undefined` for what no agent of this version says. */
export function decodeLinkEvent(record: Uint8Array): LinkEvent | undefined {
  let json: unknown;
  try {
    json = JSON.parse(decoder.decode(record));
  } catch {
    return undefined;
  }
  if (typeof json !== 'object' || json === null) return undefined;
  const { type } = json as Json;
  const known = typeof type === 'string' && Object.hasOwn(often, type) ? often[type] : undefined;
  if (known) return known(json as Json) ? (json as LinkEvent) : undefined;
  return linkEvent.safeParse(json).data;
}
