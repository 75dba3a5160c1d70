// The record of a zone as operators read it: what is in the log, and what is still on its way.
import { fetchCheckpoint, fetchEntries, openReader } from '../../infra/cli/audit-log.ts';

export interface LogPlace {
  readonly zone: string;
  readonly vkey: string;
  readonly prefix: string;
}

/** All entries of a zone's log, as text. Throws when the checkpoint is not signed by its key. */
export async function readEntries(edge: string, token: string, zone: string): Promise<string[]> {
  const headers = { authorization: `Bearer ${token}` };
  const { data } = (await (await fetch(`${edge}/v1/audit/log`, { headers })).json()) as { data: LogPlace[] };
  const place = data.find((one) => one.zone === zone);
  const reader = place && (await openReader(`${edge}${place.prefix}`, place.vkey, headers));
  if (!reader) throw new Error(`there is no log of ${zone}`);
  const { checkpoint } = await fetchCheckpoint(reader);
  const entries: string[] = [];
  for (let bundle = 0; bundle * 256 < checkpoint.size; bundle += 1) {
    for (const entry of await fetchEntries(reader, bundle, checkpoint.size)) {
      entries.push(new TextDecoder().decode(entry));
    }
  }
  return entries;
}

/** The outbox first: what leaves it in between is in the log. */
export async function readRecord(edge: string, token: string, tenant: string, zone: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  const outbox = await (await fetch(`${edge}/v1/audit/outbox?tenant=${tenant}`, { headers })).text();
  return [outbox, ...(await readEntries(edge, token, zone))].join('\n');
}
