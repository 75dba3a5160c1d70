// Sends one file to storage in blocks, sealed on the way or as it is, and goes on where it was interrupted.
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import {
  blockHeaders,
  blockList,
  blockListQuery,
  blockQuery,
  listHeaders,
  putFailure,
} from '../../../shared/jobs/blocks.ts';
import { UPLOAD_BLOCK_BYTES } from '../../../shared/jobs/limits.ts';
import type { Envelope } from '../../../shared/seal/envelope.ts';
import { sealRecords } from '../../../shared/seal/envelope-stream.ts';
import { SEAL_SEGMENT_BYTES } from '../../../shared/seal/limits.ts';
import type { Journal } from './upload-journal.ts';

/** Tries of one block of a file: a minute without network is little to a file that took ten. */
const UPLOAD_TRIES_MAX = 6;

/** The destination of the file, with the `envelope` of a sealed one. */
export interface Target {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly envelope: Envelope | undefined;
}

export interface Sending {
  readonly target: Target;
  /** The record of blocks that were sent. */
  readonly journal: Journal;
  readonly fetch: typeof fetch;
  readonly pause: (attempt: number) => Promise<void>;
  readonly progress: (sent: number, of: number) => void;
}

/** The store refused, or the file changed. `again`: another run of the same command may succeed. */
export class SendProblem extends Error {
  readonly again: boolean;
  constructor(message: string, again: boolean) {
    super(message);
    this.again = again;
  }
}

const segment = SEAL_SEGMENT_BYTES;
/** Whole segments, so that a block is a run of records. */
const BLOCK = Math.floor(UPLOAD_BLOCK_BYTES / segment) * segment;
const PER_BLOCK = BLOCK / segment;

/** Reads, seals and sends `bytes` bytes of the file. One block is held at a time. */
export async function sendFile(file: string, bytes: number, sending: Sending): Promise<void> {
  const handle = await open(file);
  try {
    const blocks = Math.max(1, Math.ceil(bytes / BLOCK));
    for (let block = 0; block < blocks; block += 1) {
      const plain = await readBlock(handle, block, Math.min(BLOCK, bytes - block * BLOCK));
      await sendBlock(block, block === blocks - 1, plain, sending);
      sending.progress(Math.min(bytes, (block + 1) * BLOCK), bytes);
    }
    await commit(blocks, sending);
  } finally {
    await handle.close();
  }
}

async function readBlock(handle: FileHandle, block: number, size: number): Promise<Uint8Array> {
  const plain = new Uint8Array(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await handle.read(plain, filled, size - filled, block * BLOCK + filled);
    if (bytesRead === 0) throw new SendProblem('the file became shorter while it was sent', false);
    filled += bytesRead;
  }
  return plain;
}

async function sendBlock(block: number, last: boolean, plain: Uint8Array, sending: Sending): Promise<void> {
  const { journal, target } = sending;
  // Two plaintexts sealed under one number would break both, so what was begun goes on with the same bytes or not at
  // all; and a file that changed between two blocks is no file.
  const digest = createHash('sha256').update(plain).digest('base64url');
  const before = journal.digest(block);
  if (before !== undefined && before !== digest)
    throw new SendProblem('the file has changed since it was begun', false);
  if (journal.isSent(block)) return;
  journal.begin(block, digest);
  const body = target.envelope ? await sealBlock(target.envelope, block, last, plain) : plain;
  await put(blockQuery(block), body, blockHeaders(sending.target.headers), sending);
  journal.sent(block);
}

/** The records of a block; the head of the file stands before the first. */
async function sealBlock(envelope: Envelope, block: number, last: boolean, plain: Uint8Array): Promise<Uint8Array> {
  const sealer = await sealRecords(envelope, block * PER_BLOCK);
  const parts: Uint8Array[] = block === 0 ? [envelope.head] : [];
  for (let at = 0; at < plain.length || (last && at === 0); at += segment) {
    const piece = plain.subarray(at, at + segment);
    parts.push(await sealer.seal(piece, last && at + segment >= plain.length));
  }
  return Buffer.concat(parts);
}

async function commit(blocks: number, sending: Sending): Promise<void> {
  const headers = { ...listHeaders(sending.target.headers), 'content-type': 'application/xml' };
  await put(blockListQuery, Buffer.from(blockList(blocks)), headers, sending);
}

async function put(
  query: string,
  body: Uint8Array,
  headers: Record<string, string>,
  { target, fetch: send, pause }: Sending,
): Promise<void> {
  let why = 'no attempt was made';
  for (let attempt = 1; attempt <= UPLOAD_TRIES_MAX; attempt += 1) {
    if (attempt > 1) await pause(attempt);
    const sending = send(`${target.url}&${query}`, { method: 'PUT', headers, body: body as BodyInit });
    const failure = await putFailure(sending, query);
    if (!failure) return;
    why = failure.detail;
    if (!failure.retryable) throw new SendProblem(why, false);
  }
  throw new SendProblem(why, true);
}
