import { expect, it } from 'vitest';
import type { RecordingOptions } from '../../../edge/protocol/deepgram-answer.ts';
import { readRecordingQuery } from '../../../edge/protocol/deepgram-query.ts';
import { answerRecording } from '../../../edge/protocol/deepgram-recording.ts';
import type { Source } from '../../../edge/protocol/openai-audio.ts';
import { readTranscriptEvent } from '../../../edge/routing/read-event.ts';
import { ok } from '../../../shared/result.ts';
import type { AnswerEvent } from '../../../shared/speech/transcript.ts';

const options = (query: string): RecordingOptions => {
  const read = readRecordingQuery(new URLSearchParams(query));
  if (!read.ok) throw new Error(read.refusal.reason);
  return read.value;
};

const segment = (index: number, start: number, text: string, channel: number | undefined): AnswerEvent => {
  const times = { start, end: start + 1, confidence: 0.9 };
  const words = [{ word: text, ...times }];
  return {
    type: 'segment',
    index,
    text,
    ...times,
    logProbability: -1,
    words,
    ...(channel !== undefined && { channel }),
  };
};

/** Answers with events that pass an agent's record. */
async function answer(query: string, separate: boolean) {
  const channel = (number: number) => (separate ? number : undefined);
  const final = { model: 'm', revision: 'sha256:1', language: 'en', durationSeconds: 4, speechSeconds: 3, segments: 3 };
  const events: AnswerEvent[] = [
    segment(0, 2, 'hello', channel(2)),
    segment(1, 0, 'yes', channel(0)),
    segment(2, 3, 'thanks', channel(0)),
    { type: 'final', ...final, ...(separate && { channels: 3 }) },
  ];
  const records = events.map((event) => readTranscriptEvent(new TextEncoder().encode(JSON.stringify(event))));
  const source = {
    next: async () => ok(records.shift()),
    end: async (outcome: unknown) => outcome,
  } as unknown as Source;
  let id = 0;
  const facts = { request: 'r', created: 0, model: () => 'm', newId: () => `${++id}`, sha256: () => '' };
  return answerRecording(source, options(query), facts);
}

it('U7 multichannel gives each channel its own transcript, silent ones included', async () => {
  const response = await answer('multichannel=true&utterances=true', true);
  expect(await response.json()).toMatchObject({
    metadata: { channels: 3, duration: 4 },
    results: {
      channels: ['yes thanks', '', 'hello'].map((transcript) => ({ alternatives: [{ transcript }] })),
      utterances: [
        { channel: 0, transcript: 'yes' },
        { channel: 2, transcript: 'hello' },
        { channel: 0, transcript: 'thanks' },
      ],
    },
  });
});

it('U7 a mix of an earlier agent is refused as multichannel', async () => {
  expect((await answer('multichannel=true', false)).status).toBe(502);
  expect((await answer('', false)).status).toBe(200);
});
