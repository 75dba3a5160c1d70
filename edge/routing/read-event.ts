import { type AnswerEvent, answerEvent, type Final, type Segment, type Word } from '../../shared/speech/transcript.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Decodes the event of a record. Returns undefined for an event that no agent of this version sends. */
export function readTranscriptEvent(record: Uint8Array): AnswerEvent | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(record));
    // The schema decides; the usual well-formed shape is recognised at a tenth of its cost.
    return readUsual(value as Loose) ?? answerEvent.safeParse(value).data;
  } catch {
    return undefined;
  }
}

type Loose = Readonly<Record<string, unknown>>;

function readUsual(value: Loose): AnswerEvent | undefined {
  switch (value?.type) {
    case 'segment':
      return readSegment(value);
    case 'final':
      return readFinal(value);
    case 'ready': {
      const { agent, model, revision } = value;
      return isText(agent) && isText(model) && isText(revision) ? { type: 'ready', agent, model, revision } : undefined;
    }
    case 'form':
      return readFields(value);
    default:
      return undefined;
  }
}

function readFields({ fields, degraded }: Loose): AnswerEvent | undefined {
  // Rare members need the schema.
  if (degraded !== undefined) return undefined;
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return undefined;
  const read: Record<string, string[]> = {};
  for (const [name, values] of Object.entries(fields)) {
    // A name other than a plain one needs the schema.
    if (name === '__proto__' || !Array.isArray(values) || !values.every(isText)) return undefined;
    read[name] = values;
  }
  return { type: 'form', fields: read };
}

function hasMembers(one: Loose, count: number): boolean {
  let found = 0;
  for (const _ in one) found += 1;
  return found === count;
}

const isText = (value: unknown): value is string => typeof value === 'string';
/** Numbers of JSON are finite. */
const isFrom = (least: number, value: unknown): value is number => typeof value === 'number' && value >= least;
const isShare = (value: unknown): value is number => isFrom(0, value) && value <= 1;
const isCount = (value: unknown): value is number => isFrom(0, value) && Number.isSafeInteger(value);

function readSegment({
  index,
  start,
  end,
  text,
  confidence,
  logProbability,
  words,
  channel,
}: Loose): Segment | undefined {
  if (!isCount(index) || !isFrom(0, start) || !isFrom(0, end) || !isText(text) || !isShare(confidence))
    return undefined;
  if (typeof logProbability !== 'number' || logProbability > 0 || !Array.isArray(words)) return undefined;
  for (const one of words as Loose[]) {
    // A word with more members needs the schema, which removes them.
    if (typeof one !== 'object' || one === null || !hasMembers(one, 4)) return undefined;
    const { word, start: from, end: to, confidence: sure } = one;
    if (!isText(word) || !isFrom(0, from) || !isFrom(0, to) || !isShare(sure)) return undefined;
  }
  const usual = {
    type: 'segment',
    index,
    start,
    end,
    text,
    confidence,
    logProbability,
    words: words as Word[],
  } as const;
  if (channel === undefined) return usual;
  return isCount(channel) ? { ...usual, channel } : undefined;
}

function readFinal(value: Loose): Final | undefined {
  const { model, revision, language, durationSeconds, speechSeconds, segments, channels, languageConfidence } = value;
  // A rare member needs the schema.
  if (channels !== undefined || languageConfidence !== undefined) return undefined;
  if (!isText(model) || !isText(revision) || !isText(language)) return undefined;
  if (!isFrom(0, durationSeconds) || !isFrom(0, speechSeconds) || !isCount(segments)) return undefined;
  return { type: 'final', model, revision, language, durationSeconds, speechSeconds, segments };
}
