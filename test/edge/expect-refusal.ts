import { expect } from 'vitest';
import { readRefusal } from '../fake/network.ts';

/** `minute` and `day`: the time until an allowance admits the request. */
export type Advice = 'never' | 'soon' | 'later' | 'minute' | 'day';

const ranges = { never: [0, 0], soon: [1, 2], later: [30, 60], minute: [1, 60], day: [1, 86_400] } as const;

/** Expects the headers of every refusal, seconds within the advised range, and exactly this text. */
export async function expectRefusal(
  answer: Response,
  status: number,
  code: string,
  advice: Advice,
  message: string | RegExp,
) {
  expect(answer.headers.get('x-request-id')).toMatch(/^[\w-]{16,}$/);
  expect(answer.headers.get('content-type')).toBe('application/json');
  const seconds = answer.headers.get('retry-after');
  // Clients wait a minute at most.
  expect(answer.headers.get('x-should-retry')).toBe(String(advice !== 'never' && Number(seconds) <= 60));
  expect(seconds === null).toBe(advice === 'never');
  expect(answer.headers.get('retry-after-ms')).toBe(seconds === null ? null : String(Number(seconds) * 1_000));
  const [least, most] = ranges[advice];
  if (seconds !== null) expect(Number(seconds)).toBeGreaterThanOrEqual(least);
  if (seconds !== null) expect(Number(seconds)).toBeLessThanOrEqual(most);
  const text = typeof message === 'string' ? message : expect.stringMatching(message);
  expect(await readRefusal(answer)).toEqual({ status, code, message: text });
}
