// Uploads and projects of one tenant, each made with an Idempotency-Key.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { clipBytes } from '../../../stack/clips.ts';
import { type Answer, type Caller, recorded, request } from './callers.ts';

export type Kind = 'uploads' | 'projects';

/** A request for an upload or a project, and what its caller knows about it. */
export interface Made {
  readonly kind: Kind;
  readonly key: string;
  /** Absent without an answer of 201. */
  id?: string;
  /** Code of the refusal; absent where none came. */
  refusal?: string;
}

export interface Listed {
  readonly id: string;
  readonly status: string;
  readonly seconds?: number;
}

const bytes = clipBytes(recorded);
const documents = [{ text: 'Good morning. The weather is fine today.' }];
const bodies = {
  uploads: JSON.stringify({ model: 'reference-en', sealed: false, bytes: bytes.length }),
  projects: JSON.stringify({ model: 'voice-en', sealed: false, documents }),
};
/** Pause between two attempts to write a file, ms. */
const AGAIN_MS = 1_000;

export const newMade = (kind: Kind): Made => ({ kind, key: randomUUID() });

/**
 * Makes the object, or finds the one of the same key. An upload's file is written until storage has it, at
 * most until `giveUpAt`.
 */
export async function make(caller: Caller, made: Made, giveUpAt: () => number): Promise<Answer> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': made.key };
  const answer = await request(caller, `/v1/${made.kind}`, { method: 'POST', headers, body: bodies[made.kind] });
  if (answer.status !== 201) {
    made.refusal = answer.code;
    return answer;
  }
  const { id, url, headers: own } = JSON.parse(answer.text) as { id: string; url: string; headers: HeadersInit };
  made.id = id;
  while (made.kind === 'uploads') {
    const put = await fetch(url, { method: 'PUT', headers: own, body: bytes }).catch(() => undefined);
    await put?.body?.cancel();
    // A try before this one may have been written without an answer.
    if (put?.ok || put?.status === 409 || put?.status === 412) break;
    if (Date.now() > giveUpAt()) throw new Error(`file not written: ${put?.status ?? 'no answer'}`);
    await pause(AGAIN_MS);
  }
  return answer;
}

/** Lists all objects of the tenant; `undefined` when they are unreadable now. */
export async function list(caller: Caller, kind: Kind): Promise<Listed[] | undefined> {
  const all: Listed[] = [];
  for (;;) {
    const after = all.length > 0 ? `?after=${all.at(-1)?.id}` : '';
    const answer = await request(caller, `/v1/${kind}${after}`).catch(() => undefined);
    if (answer?.status !== 200) return undefined;
    const { data } = JSON.parse(answer.text) as { data: Listed[] };
    if (data.length === 0) return all;
    all.push(...data);
  }
}
