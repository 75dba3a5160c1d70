// auricle audit erase|erasures|hold|holds|release
import { z } from 'zod';
import { erasureBases, erasureBasis } from '../../../shared/audit/privacy.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';

const erased = z.object({
  zone: z.string(),
  outcome: z.enum(['done', 'deferred', 'nothing']),
  basis: z.string(),
  asked: z.string().optional(),
  until: z.number().optional(),
  count: z.number(),
});
const waiting = z.object({
  zone: z.string(),
  subject: z.string(),
  basis: z.string(),
  at: z.number(),
  deferred: z.object({ basis: z.string(), until: z.number().optional() }).optional(),
});
const held = z.object({
  zone: z.string(),
  id: z.string(),
  scope: z.string(),
  subject: z.string().optional(),
  reason: z.string(),
  at: z.number(),
});
const released = z.object({ zone: z.string(), id: z.string() });

type Headers = Record<string, string>;

/** Verbs by name. */
export const privacyVerbs: ReadonlyMap<string, (given: Arguments, headers: Headers) => Promise<Answer> | Answer> =
  new Map([
    ['erase', erase],
    [
      'erasures',
      (given: Arguments, headers: Headers) =>
        query(given, headers, { path: '/erasures', schema: waiting, lineOf: lineOfWaiting }),
    ],
    ['hold', setHold],
    [
      'holds',
      (given: Arguments, headers: Headers) =>
        query(given, headers, { path: '/holds', schema: held, lineOf: lineOfHold }),
    ],
    ['release', release],
  ]);

function erase(given: Arguments, headers: Headers): Promise<Answer> | Answer {
  const { subject, commitment, basis, zone } = given;
  if (subject === undefined && commitment === undefined)
    return wrong('missing subject: --subject S, or --commitment C');
  const bases = `${erasureBases.join(', ')}, or other:NAME`;
  if (basis === undefined) return wrong(`missing --basis ${bases}; the log shows it`);
  if (!erasureBasis.safeParse(basis).success) return wrong(`"${basis}" is not a basis: ${bases}`);
  const body = { subject, commitment, basis, zone };
  const lineOf = (one: z.infer<typeof erased>) => lineOfErased(one, basis);
  return query(given, headers, { path: '/erasures', body, schema: erased, lineOf });
}

function setHold(given: Arguments, headers: Headers): Promise<Answer> | Answer {
  const { subject, commitment, basis, zone, reason, id } = given;
  if (reason === undefined) return wrong('missing --reason, such as "case 7"');
  const body = { subject, commitment, basis, zone, reason, id };
  return query(given, headers, { path: '/holds', body, schema: held, lineOf: lineOfHold });
}

function release(given: Arguments, headers: Headers): Promise<Answer> | Answer {
  const [, id = ''] = given.operands;
  const { reason, zone } = given;
  if (reason === undefined) return wrong('missing --reason, such as "case 7 is over"');
  const path = `/holds/${encodeURIComponent(id)}/release`;
  return query(given, headers, { path, body: { reason, zone }, schema: released, lineOf: lineOfReleased });
}

interface AuditRequest<S extends z.ZodType> {
  readonly path: string;
  /** Absent: a GET. */
  readonly body?: object;
  /** Schema of one item of the answer. */
  readonly schema: S;
  readonly lineOf: (one: z.infer<S>) => string;
}

export async function query<S extends z.ZodType>(
  { edge, zone }: Arguments,
  headers: Headers,
  { path, body, schema, lineOf }: AuditRequest<S>,
): Promise<Answer> {
  const query = body === undefined && zone !== undefined ? `?zone=${encodeURIComponent(zone)}` : '';
  const response = await fetch(`${edge}/v1/audit${path}${query}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) return refused(response);
  const value: unknown = await response.json();
  const parsed = z.object({ data: z.array(schema) }).safeParse(value);
  if (!parsed.success) return wrong('the edge answered in an unknown form');
  const lines = parsed.data.data.map((one) => lineOf(one as z.infer<S>));
  return { exit: 0, text: lines.length > 0 ? lines.join('\n') : 'none', value };
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);
const untilOf = ({ basis, until }: { basis: string; until?: number | undefined }): string =>
  `${until === undefined ? 'until it is released' : `until ${dayOf(until)}`} (${basis})`;

export function lineOfErased(one: z.infer<typeof erased>, basis: string): string {
  const other = one.asked !== undefined && one.asked !== basis ? `; already requested with basis ${one.asked}` : '';
  if (one.outcome === 'deferred') return `${one.zone}  waits ${untilOf(one)}${other}`;
  if (one.outcome === 'nothing')
    return `${one.zone}  nothing is hidden about this subject; its own acts on the record (erasures, holds, exports, reads) stay`;
  return `${one.zone}  erased; the index had ${one.count} ${one.count === 1 ? 'record' : 'records'}${other}`;
}

const lineOfReleased = ({ zone, id }: z.infer<typeof released>): string =>
  `${zone}  ${id}  released; erasures that waited for it run within five minutes`;

export function lineOfWaiting({ zone, subject, at, deferred }: z.infer<typeof waiting>): string {
  const soon = deferred && deferred.until === undefined ? ', and runs within five minutes of that' : '';
  return `${zone}  ${subject}  asked ${dayOf(at)}, ${deferred ? `waits ${untilOf(deferred)}${soon}` : 'is being done'}`;
}

const lineOfHold = ({ zone, id, scope, subject, reason, at }: z.infer<typeof held>): string =>
  `${zone}  ${id}  since ${dayOf(at)}  ${scope === 'tenant' ? 'the whole tenant' : subject}  ${reason}`;
