// auricle audit gaps|accept-gap
import { z } from 'zod';
import { gap } from '../../../shared/audit/gaps.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { query } from './erase.ts';

const zoned = gap.extend({ zone: z.string() });

type Headers = Record<string, string>;

export const listGaps = (given: Arguments, headers: Headers): Promise<Answer> =>
  query(given, headers, { path: '/gaps', schema: zoned, lineOf: lineOfGap });

export async function acceptGap(given: Arguments, headers: Headers): Promise<Answer> {
  const [, place = ''] = given.operands;
  const { edge, zone, reason } = given;
  if (!gap.shape.gap.safeParse(place).success) return wrong('missing gap, such as 2026-731: audit gaps lists them');
  if (reason === undefined) return wrong('missing --reason, such as "restored from a backup of 3 May"');
  const response = await fetch(`${edge}/v1/audit/gaps/accept`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ gap: place, reason, zone }),
  });
  if (!response.ok) return refused(response);
  const value: unknown = await response.json();
  const parsed = zoned.safeParse(value);
  return parsed.success
    ? { exit: 0, text: lineOfGap(parsed.data), value }
    : wrong('the edge answered in an unknown form');
}

function lineOfGap({ zone, gap: place, outbox, epoch, from, to, request, accepted }: z.infer<typeof zoned>): string {
  const range = to === undefined ? `events from ${from} on` : `events ${from} to ${to}`;
  const what = request === undefined ? range : `${request} has no end`;
  const state = accepted ? `accepted ${new Date(accepted.at).toISOString()}` : 'open';
  return [zone, place, outbox, epoch, what, state].join('  ');
}
