// Record of a zone for operators: the log, and the events still in outboxes.
import { fetchCheckpoint, fetchEntries, openReader } from '../../infra/cli/audit/log.ts';

export interface LogPlace {
  readonly zone: string;
  readonly vkey: string;
  readonly prefix: string;
}

/** Returns all entries of a zone's log as text. Throws when the checkpoint is not signed by its key. */
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

/** Reads the outbox first: events that leave it in between are in the log. */
export async function readRecord(edge: string, token: string, tenant: string, zone: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  const outbox = await (await fetch(`${edge}/v1/audit/outbox?tenant=${tenant}`, { headers })).text();
  return [outbox, ...(await readEntries(edge, token, zone))].join('\n');
}
