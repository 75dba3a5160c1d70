// The journal of an upload, a line for each step, from which an interrupted run resumes. It holds the key of the file and
// a writable address, so only its owner may read it, and the end of the upload deletes it.

import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { jsonOf } from '../../../shared/json-text.ts';

/** Time before an address expires in which no block starts, since a block takes its time. */
const UPLOAD_MARGIN_MS = 60_000;

/** The identity of a run. */
export interface JournalName {
  readonly edge: string;
  readonly file: string;
  readonly bytes: number;
  readonly modified: number;
  readonly asked: Readonly<Record<string, unknown>>;
}

const begun = z.object({
  id: z.string(),
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  /** Milliseconds since 1970. */
  expires: z.number(),
  envelope: z.object({ head: z.string(), baseKey: z.string(), suite: z.literal(5) }).optional(),
});
/** Bytes in base64url. */
export type StartedUpload = z.infer<typeof begun>;

const step = z.union([z.object({ block: z.number().int(), digest: z.string() }), z.object({ sent: z.number().int() })]);

export interface Journal {
  readonly begun: StartedUpload;
  /** SHA-256 of what the block was when it was begun. */
  digest(block: number): string | undefined;
  isSent(block: number): boolean;
  begin(block: number, digest: string): void;
  sent(block: number): void;
  /** All is sent, or will never be. */
  remove(): void;
}

const placeOf = (folder: string, name: JournalName): string =>
  path.join(folder, `${createHash('sha256').update(JSON.stringify(name)).digest('hex')}.jsonl`);

export const journalFolder = (environment: NodeJS.ProcessEnv): string =>
  path.join(environment.XDG_STATE_HOME || path.join(os.homedir(), '.local', 'state'), 'auricle', 'uploads');

/** The journal of a run that was interrupted, if there is one of use. */
export function findJournal(folder: string, name: JournalName, now: number): Journal | undefined {
  const place = placeOf(folder, name);
  let lines: string[];
  try {
    lines = readFileSync(place, 'utf8').split('\n').filter(Boolean);
  } catch {
    return undefined;
  }
  const first = begun.safeParse(jsonOf(lines[0] ?? ''));
  if (!first.success || first.data.expires - UPLOAD_MARGIN_MS < now) return undefined;
  const digests = new Map<number, string>();
  const sent = new Set<number>();
  for (const line of lines.slice(1)) {
    // The last line may be cut off: its step is repeated.
    const { data } = step.safeParse(jsonOf(line));
    if (!data) continue;
    if ('sent' in data) sent.add(data.sent);
    else digests.set(data.block, data.digest);
  }
  return journalOf(place, first.data, digests, sent);
}

export function beginJournal(folder: string, name: JournalName, first: StartedUpload): Journal {
  const place = placeOf(folder, name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(place, `${JSON.stringify(first)}\n`, { mode: 0o600 });
  return journalOf(place, first, new Map(), new Set());
}

function journalOf(place: string, first: StartedUpload, digests: Map<number, string>, sent: Set<number>): Journal {
  const note = (value: unknown) => appendFileSync(place, `\n${JSON.stringify(value)}`, { mode: 0o600 });
  return {
    begun: first,
    digest: (block) => digests.get(block),
    isSent: (block) => sent.has(block),
    begin(block, digest) {
      if (digests.has(block)) return;
      note({ block, digest });
      digests.set(block, digest);
    },
    sent(block) {
      note({ sent: block });
      sent.add(block);
    },
    remove: () => rmSync(place, { force: true }),
  };
}
