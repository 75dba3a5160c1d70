// auricle audit search: entries of the tenant by request, subject, model, day or type.
import { z } from 'zod';
import { type Leaf, readLeaf } from '../../../shared/audit/leaf.ts';
import { type FoundEntries, foundEntries } from '../../../shared/audit/search.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';

const answered = z.object({ data: z.array(foundEntries) });

/** Sends a search. A subject goes in a header, since addresses are logged in many places. */
export async function fetchHits(
  edge: string,
  parameters: Readonly<Record<string, string | undefined>>,
  headers: Record<string, string>,
  subject?: string,
): Promise<Answer | FoundEntries[]> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, value);
  const about = subject === undefined ? {} : { 'x-auricle-subject': encodeURIComponent(subject) };
  const response = await fetch(`${edge}/v1/audit/search?${query}`, { headers: { ...headers, ...about } });
  if (!response.ok) return refused(response);
  const parsed = answered.safeParse(await response.json().catch(() => undefined));
  return parsed.success ? parsed.data.data : wrong('the edge answered in an unknown form');
}

const isCommitment = (text = ''): boolean => /^c1:[0-9a-f]{64}$/.test(text);

export async function searchAudit(given: Arguments, headers: Record<string, string>): Promise<Answer> {
  const { edge, request, onlyModel: model, day, type, zone, after } = given;
  if (after !== undefined && zone === undefined) return wrong('--after needs --zone: it continues in one zone');
  const [commitment, subject] = isCommitment(given.subject)
    ? [given.subject, undefined]
    : [given.commitment, given.subject];
  const found = await fetchHits(edge, { request, commitment, model, day, type, zone, after }, headers, subject);
  if (!Array.isArray(found)) return found;
  const hits = found.flatMap(({ zone: name, hits: some }) =>
    some.map(({ year, index, entry }) => ({
      ...{ zone: name, year, index },
      leaf: readLeaf(new TextEncoder().encode(entry)),
    })),
  );
  const more = found.flatMap(({ zone: name, next }) =>
    next === undefined ? [] : [`more: --zone ${name} --after '${next}'`],
  );
  const lines = [...hits.map(lineOf), ...more];
  const none = `nothing was found in ${found.map(({ zone: name }) => name).join(', ')}`;
  const [indexed, next] = [
    Object.fromEntries(found.map((one) => [one.zone, one.indexed])),
    Object.fromEntries(found.map((one) => [one.zone, one.next])),
  ];
  const text = lines.length > 0 ? lines.join('\n') : none;
  return { exit: hits.length > 0 ? 0 : 1, text, value: { hits, indexed, next } };
}

interface Hit {
  readonly zone: string;
  readonly year: number;
  readonly index: number;
  readonly leaf: Leaf | undefined;
}

function lineOf({ zone, year, index, leaf }: Hit): string {
  const place = `${zone}/${year} ${String(index).padStart(6)}`;
  if (!leaf) return `${place}  (written by a newer version)`;
  const { t, type, req = '', model = '', action = '', status = '' } = leaf as Leaf & Record<string, string>;
  const members = [req, action, model, status].filter((part) => part !== '').join(' ');
  return `${place}  ${new Date(t.origin).toISOString()}  ${type.padEnd(19)}  ${members}`;
}
