// Uploads as owners send them: sealed to the zone's key, one PUT each, and polled until they end.
import { setTimeout as pause } from 'node:timers/promises';
import { sealSmall } from '../../../shared/seal/envelope-stream.ts';
import type { ZoneKey } from '../../../shared/seal/zone-key.ts';
import type { Path } from './path.ts';

interface Grant {
  readonly id: string;
  readonly tenant: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly zone_key: ZoneKey;
}

async function ask(path: Path, at: string, init: RequestInit = {}): Promise<unknown> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${path.token}` };
  const response = await fetch(`${path.url}${at}`, { ...init, headers });
  if (!response.ok) throw new Error(`${at}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** Asks for an address and puts the file there; its id. */
export async function send(path: Path, file: Uint8Array): Promise<string> {
  const wanted = { model: 'reference-en', sealed: true };
  const grant = (await ask(path, '/v1/uploads', { method: 'POST', body: JSON.stringify(wanted) })) as Grant;
  const facts = { tenant: grant.tenant, upload: grant.id, name: 'upload' };
  const body = await sealSmall(facts, grant.zone_key, file);
  const put = await fetch(grant.url, { method: 'PUT', headers: grant.headers, body });
  if (put.status !== 201) throw new Error(`PUT: ${put.status}`);
  return grant.id;
}

interface Row {
  readonly id: string;
  readonly status: string;
  readonly seconds?: number;
}

const OVER = new Set(['done', 'refused', 'cancelled', 'expired']);

/** Waits until an upload is over. Throws when there is no transcript. */
export async function finish(path: Path, id: string, lookMs = 100): Promise<Row> {
  for (;;) {
    const row = (await ask(path, `/v1/uploads/${id}`)) as Row;
    if (row.status === 'done') return row;
    if (OVER.has(row.status)) throw new Error(`${id}: ${JSON.stringify(row)}`);
    await pause(lookMs);
  }
}
