import { rateLimitNames } from '../http/rate-limit.ts';

const about: Readonly<Record<string, string>> = {
  limit: 'Quota of the token: requests in any minute, or seconds of audio in a day (UTC)',
  remaining:
    'Remaining quota after this request, by the last answer of the Gate to this isolate, at most 5 s old. ' +
    'Requests leased by other isolates count as used; seconds are booked when a request ends',
  reset: 'Time until the whole quota is available again without further use, in seconds: `12s`',
};

/** Name of a header's description: its words joined. */
const named = (name: string) => name.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Descriptions of the headers, for the components of the document. */
export const rateLimitComponents = Object.fromEntries(
  rateLimitNames.map((name) => {
    const what = name.split('-')[2] as string;
    return [named(name), { description: about[what], schema: { type: what === 'reset' ? 'string' : 'number' } }];
  }),
);

/** The headers, as an answer refers to them. */
export const rateLimitRefs = Object.fromEntries(
  rateLimitNames.map((name) => [name, { $ref: `#/components/headers/${named(name)}` }]),
);

interface Answer {
  readonly description: string;
  readonly headers?: object;
}
interface Operation {
  readonly responses: Readonly<Record<string, Answer>>;
}

/** Adds the headers to the answers of every operation that costs allowance: those that `allowance_requests` may refuse. */
export function withRateLimits(paths: object): object {
  const map = <T>(value: object, change: (one: T) => unknown) =>
    Object.fromEntries(Object.entries(value).map(([key, one]) => [key, change(one as T)]));
  return map<object>(paths, (path) => map<Operation>(path, withHeaders));
}

function withHeaders(operation: Operation): Operation {
  if (!operation.responses['429']?.description.includes('`allowance_requests`')) return operation;
  const answers = Object.entries(operation.responses).map(([status, answer]) =>
    /^(1|2|429)/.test(status)
      ? [status, { ...answer, headers: { ...answer.headers, ...rateLimitRefs } }]
      : [status, answer],
  );
  return { ...operation, responses: Object.fromEntries(answers) };
}
