import { type ClientRequest, type IncomingMessage, request as requestPlainly } from 'node:http';
import { request as requestSecurely } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OpenedJob } from '../../../../shared/jobs/upload-contract.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';

/** Attempts at one blob before the whole job is left for later; a read continues at the break. */
export const BLOB_TRIES_MAX = 4;
/** First pause between attempts at a blob; it doubles. */
const BLOB_RETRY_MS = 200;
/** Time without progress after which storage counts as lost. */
const BLOB_IDLE_MS = 30_000;

// Blobs by the addresses that the back office signs. With Node's own HTTP, as `fetch` would unpack what its owner marked
// as packed, and sends no length with a stream. Names of failures are ours; an address is a secret and is never told.

export type ReadAt = OpenedJob['read'][string];

/** A blob being read. */
export interface BlobReader {
  /** Bytes of the blob, read on demand; errors when they cannot be read. */
  readonly body: ReadableStream<Uint8Array>;
  /** Bytes so far. */
  bytes(): number;
  /** Why it erred: `upload_changed`, `upload_audio_gone`, or `uploads_unavailable` for what may pass. */
  failure(): Refusal | undefined;
}

/** Content to write, created again for each attempt. */
export interface BlobContent {
  readonly length: number;
  readonly body: ReadableStream<Uint8Array>;
}

export interface Storage {
  read(at: ReadAt, signal: AbortSignal): BlobReader;
  /**
   * Creates a blob with these metadata. `exists`: another writer or a lost first attempt has created it.
   * `closed`: the address no longer writes; an earlier attempt may have.
   */
  write(
    url: string,
    content: () => Promise<BlobContent>,
    metadata: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Result<'written' | 'exists' | 'closed'>>;
}

export interface StorageOptions {
  /** First pause between attempts, in milliseconds; shorter in tests. */
  readonly retryMs?: number;
  readonly idleMs?: number;
}

const unavailable = (detail: string) => refuse('uploads_unavailable', undefined, `storage: ${detail}`);

function send(url: string, method: 'GET' | 'PUT', headers: Record<string, string>, signal: AbortSignal): ClientRequest {
  const request = url.startsWith('https:') ? requestSecurely : requestPlainly;
  return request(url, { method, headers, signal });
}

/** The head of the answer; rejects when there is none. */
function answered(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
  });
}

const codeOf = (error: unknown) =>
  error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.name) : 'unknown';

/** Answers that no repetition changes. */
const finalReads: Record<number, Refusal> = {
  404: refuse('upload_audio_gone', undefined, 'storage: 404'),
  412: refuse('upload_changed', undefined, 'storage: 412'),
};

const backOff = (firstMs: number, attempt: number, signal: AbortSignal) =>
  sleep(firstMs * 2 ** attempt, undefined, { signal });

/** Requests a blob from `offset` on. Rejects without an answer. */
function requestRange(at: ReadAt, offset: number, idleMs: number, signal: AbortSignal): Promise<IncomingMessage> {
  const headers = {
    ...(offset > 0 && { range: `bytes=${offset}-` }),
    ...(at.etag !== undefined && { 'if-match': at.etag }),
  };
  const request = send(at.url, 'GET', headers, signal);
  request.setTimeout(idleMs, () => request.destroy(new Error('idle')));
  request.end();
  return answered(request);
}

/** Reads a blob, with a range request for the rest after a failure. */
function readBlob(at: ReadAt, signal: AbortSignal, { retryMs, idleMs }: Required<StorageOptions>): BlobReader {
  let offset = 0;
  let total = -1;
  let failures = 0;
  let failure: Refusal | undefined;
  let incoming: IncomingMessage | undefined;
  let chunks: AsyncIterator<Uint8Array> | undefined;

  /** Requests the rest. Throws on failure, and sets `failure` where a retry does not help. */
  async function open(): Promise<void> {
    incoming = await requestRange(at, offset, idleMs, signal);
    const status = incoming.statusCode ?? 0;
    if (status === (offset > 0 ? 206 : 200)) {
      const length = Number(incoming.headers['content-length'] ?? -1);
      if (length < 0 || (total >= 0 && offset + length !== total)) throw new Error('length');
      total = offset + length;
      chunks = incoming[Symbol.asyncIterator]();
      return;
    }
    incoming.resume();
    failure = finalReads[status];
    throw new Error(`status ${status}`);
  }

  async function next(): Promise<Uint8Array | undefined> {
    for (;;) {
      try {
        if (!chunks) await open();
        const { done, value } = (await chunks?.next()) ?? { done: true, value: undefined };
        if (!done) {
          offset += value.length;
          return value;
        }
        if (offset === total) return undefined;
        throw new Error('cut');
      } catch (error) {
        incoming?.destroy();
        chunks = undefined;
        // A range behind the last byte has no answer.
        if (offset === total) return undefined;
        if (failure || signal.aborted || ++failures >= BLOB_TRIES_MAX) {
          failure ??= unavailable(`read, ${codeOf(error)}`);
          throw error;
        }
        await backOff(retryMs, failures - 1, signal).catch(() => undefined);
      }
    }
  }

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = await next();
        if (chunk) controller.enqueue(chunk);
        else controller.close();
      },
      cancel() {
        incoming?.destroy();
      },
    },
    { highWaterMark: 0 },
  );
  return { body, bytes: () => offset, failure: () => failure };
}

/** Opens the request that creates a blob of `length` bytes. */
function openPut(
  url: string,
  length: number,
  metadata: Readonly<Record<string, string>>,
  signal: AbortSignal,
): ClientRequest {
  const headers = {
    'content-length': String(length),
    'content-type': 'application/octet-stream',
    'x-ms-blob-type': 'BlockBlob',
    'if-none-match': '*',
    ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`x-ms-meta-${name}`, value])),
  };
  return send(url, 'PUT', headers, signal);
}

/** Sends the content of a PUT and returns how storage answers it. */
async function put(request: ClientRequest, body: BlobContent['body']): Promise<{ status: number; code: string }> {
  const answer = answered(request);
  // It is awaited below; until then its error is unhandled.
  answer.catch(() => {});
  let over = false;
  answer.then(
    () => {
      over = true;
    },
    () => {
      over = true;
    },
  );
  const reader = body.getReader();
  try {
    // A refusal of storage before it has all bytes ends the request at once.
    for (;;) {
      const { done, value } = await reader.read();
      if (done || over) break;
      if (!request.write(value)) {
        await Promise.race([new Promise((resolve) => request.once('drain', resolve)), answer.catch(() => undefined)]);
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
  request.end();
  const response = await answer;
  response.resume();
  if (!response.complete) {
    await new Promise<void>((resolve) => {
      response.once('close', () => resolve());
      response.once('end', () => resolve());
    });
  }
  // A body that storage stopped reading must not hold the connection.
  if (!request.writableFinished) request.destroy();
  return { status: response.statusCode ?? 0, code: String(response.headers['x-ms-error-code'] ?? '') };
}

export function createStorage({ retryMs = BLOB_RETRY_MS, idleMs = BLOB_IDLE_MS }: StorageOptions = {}): Storage {
  async function write(
    url: string,
    content: () => Promise<BlobContent>,
    metadata: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Result<'written' | 'exists' | 'closed'>> {
    let detail = '';
    for (let attempt = 0; attempt < BLOB_TRIES_MAX && !signal.aborted; attempt++) {
      if (attempt > 0) await backOff(retryMs, attempt - 1, signal).catch(() => undefined);
      try {
        const { length, body } = await content();
        const request = openPut(url, length, metadata, signal);
        request.setTimeout(idleMs, () => request.destroy(new Error('idle')));
        const { status, code } = await put(request, body);
        if (status === 201) return ok('written');
        // 409 is `if-none-match`; 403 with this code is an address that may create and not overwrite.
        if (code === 'BlobAlreadyExists' || code === 'UnauthorizedBlobOverwrite' || status === 412) return ok('exists');
        if (status === 409 && code === '') return ok('exists');
        detail = `write, status ${status}`;
        if (status === 403) return ok('closed');
        if (status === 404) break;
      } catch (error) {
        detail = `write, ${codeOf(error)}`;
      }
    }
    return no(unavailable(detail));
  }

  return { read: (at, signal) => readBlob(at, signal, { retryMs, idleMs }), write };
}
