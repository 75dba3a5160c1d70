import { publicText, type Refusal, refusals } from '../../shared/refusal.ts';
import { logprobsOf } from '../../shared/speech/logprobs.ts';
import { allLogprobs, usage, wholeText } from '../../shared/speech/openai-answer.ts';
import type { Segment, Transcript } from '../../shared/speech/transcript.ts';
import { continueText } from '../../shared/speech/words.ts';

/** Content type of the frames below (WHATWG HTML, server-sent events). */
export const EVENT_STREAM = 'text/event-stream; charset=utf-8';

/** A comment: clients skip it, proxies see traffic. */
export const keepaliveFrame = ': keepalive\n\n';
export const doneFrame = 'data: [DONE]\n\n';

const frame = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;

/** One delta per segment, which continues `before`; all deltas joined are the text of the done frame. */
export const deltaFrame = ({ text, words }: Segment, before: string, logprobs: boolean): string =>
  frame({
    type: 'transcript.text.delta',
    delta: continueText(before, text),
    ...(logprobs && { logprobs: logprobsOf(words, before) }),
  });

export const finalFrame = (transcript: Transcript, logprobs: boolean): string =>
  frame({
    type: 'transcript.text.done',
    text: wholeText(transcript.segments),
    ...(logprobs && { logprobs: allLogprobs(transcript.segments) }),
    usage: usage(transcript),
  });

/**
 * OpenAI's error object. `param` names the field at fault, where one is. `request` goes into errors that come after the
 * headers of an answer: its id is then next to the error that it is of use for.
 */
export function errorObject(refusal: Refusal, request?: string) {
  const row = refusals[refusal.reason];
  const field = refusal.params?.field ?? ('param' in row ? row.param : undefined);
  return {
    error: {
      message: publicText(refusal),
      type: row.type,
      param: typeof field === 'string' ? field : null,
      code: refusal.reason,
      ...(request !== undefined && { request_id: request }),
    },
  };
}

/** Frame before an abort: official clients raise it as an error with a code; an abort alone reads "terminated". */
export const errorFrame = (refusal: Refusal, request?: string): string => frame(errorObject(refusal, request));
