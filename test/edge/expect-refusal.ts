import { expect } from 'vitest';
import { readRefusal } from './network.ts';

export type Advice = 'never' | 'soon' | 'later';

/** What every refusal has, the seconds in the range of its advice, and exactly this text. */
export async function expectRefusal(
  answer: Response,
  status: number,
  code: string,
  advice: Advice,
  message: string | RegExp,
) {
  expect(answer.headers.get('x-request-id')).toMatch(/^[\w-]{16,}$/);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(answer.headers.get('x-should-retry')).toBe(String(advice !== 'never'));
  const seconds = answer.headers.get('retry-after');
  expect(seconds === null).toBe(advice === 'never');
  expect(answer.headers.get('retry-after-ms')).toBe(seconds === null ? null : String(Number(seconds) * 1_000));
  const [least, most] = advice === 'later' ? [30, 60] : [1, 2];
  if (seconds !== null) expect(Number(seconds)).toBeGreaterThanOrEqual(least);
  if (seconds !== null) expect(Number(seconds)).toBeLessThanOrEqual(most);
  const text = typeof message === 'string' ? message : expect.stringMatching(message);
  expect(await readRefusal(answer)).toEqual({ status, code, message: text });
}
