import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTranscriptEvent } from '../../../edge/routing/read-event.ts';
import { answerEvent } from '../../../shared/speech/transcript.ts';

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const odd = fc.oneof(
  fc.constantFrom(null, true, 'text', '', -1, 0, 0.5, 1, 1.5, 2 ** 53, [], {}, [null], [{}]),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const or = <T>(usual: fc.Arbitrary<T>) => fc.oneof({ weight: 30, arbitrary: usual }, { weight: 1, arbitrary: odd });
const share = or(fc.double({ min: 0, max: 1, noNaN: true }));
const time = or(fc.double({ min: 0, max: 1e6, noNaN: true }));
const word = fc.record({ word: or(fc.string()), start: time, end: time, confidence: share }, { requiredKeys: [] });
const whole = fc.record({ word: fc.string(), start: time, end: time, confidence: share, more: fc.string() });
const texts = { agent: or(fc.string()), model: or(fc.string()), revision: or(fc.string()), language: or(fc.string()) };
const event = fc.oneof(
  fc.record({
    type: fc.constant('segment'),
    index: or(fc.nat()),
    start: time,
    end: time,
    text: or(fc.string()),
    confidence: share,
    logProbability: or(fc.double({ max: 0, min: -1e3, noNaN: true })),
    words: or(fc.array(fc.oneof({ weight: 9, arbitrary: whole }, word), { maxLength: 3 })),
    more: odd,
  }),
  fc.record({
    type: fc.constant('final'),
    ...texts,
    durationSeconds: time,
    speechSeconds: time,
    segments: or(fc.nat()),
  }),
  fc.record({ type: fc.constant('ready'), ...texts }, { requiredKeys: ['type', 'model'] }),
  fc.record({ type: fc.constant('form'), fields: or(fc.dictionary(fc.string(), fc.array(fc.string()))) }),
  fc.record({ type: fc.constantFrom('keepalive', 'refusal', 'other'), reason: fc.constantFrom('pool_busy', 'no', 1) }),
  odd,
);

describe('A21 an event of an agent', () => {
  it('agrees with its schema in every way to read it', () => {
    let usual = 0;
    fc.assert(
      fc.property(event, (value) => {
        const json: unknown = JSON.parse(JSON.stringify(value));
        const expected = answerEvent.safeParse(json).data;
        if (expected) usual += 1;
        expect(readTranscriptEvent(encode(value))).toEqual(expected);
      }),
      { numRuns: 2_000 },
    );
    expect(usual).toBeGreaterThan(200);
  });

  it.each([
    ['not JSON', '{'],
    ['not UTF-8', '\u00ff'],
  ])('is nothing when it is %s', (_, text) => {
    expect(readTranscriptEvent(Buffer.from(text, 'latin1'))).toBeUndefined();
  });
});
