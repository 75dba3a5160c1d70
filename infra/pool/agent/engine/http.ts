import { Readable } from 'node:stream';
import { Pool } from 'undici';
import { KiB } from '../../../../shared/bytes.ts';
import type { Body } from '../../../../shared/kserve/body.ts';
import { ENGINE_ANSWER_BYTES } from './limits.ts';

/** Bodies that go to the engine in one piece, which costs least; longer ones are not buffered twice. */
const ENGINE_WHOLE_BODY_BYTES = 256 * KiB;
/** All headers of an answer of the engine together. */
const ENGINE_HEAD_BYTES = 16_384;
/** Assumed life of an idle connection to an engine that does not name it. */
const ENGINE_REST_MS = 5_000;
/**
 * Time before that end in which a connection is no longer used: a request sent while the engine closes it
 * would be lost.
 */
const ENGINE_REST_MARGIN_MS = 1_000;

/** A response of an engine, whole. Header names are in lower case. */
export interface EngineResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
}

export interface EngineRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: Body;
  readonly signal: AbortSignal;
}

/** Connections beside those of inference, for readiness checks, loads and unloads. */
const SPARE_CONNECTIONS = 4;

/** Settles as `work` does, or rejects as soon as `signal` aborts: undici keeps a queued request until it is its turn. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(Object.assign(new Error('aborted'), { code: 'ABORT_ERR' }));
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/**
 * Creates a client for one HTTP server. Only `signal` limits the time of a request; an abort closes its connection. A
 * request rejects when there is no whole response.
 */
export function createEngineClient(url: string, connections: number) {
  const { origin, pathname } = new URL(url);
  const prefix = pathname.replace(/\/$/, '');
  const pool = new Pool(origin, {
    connections: connections + SPARE_CONNECTIONS,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: ENGINE_REST_MS,
    keepAliveTimeoutThreshold: ENGINE_REST_MARGIN_MS,
    maxHeaderSize: ENGINE_HEAD_BYTES,
    maxResponseSize: ENGINE_ANSWER_BYTES,
  });

  async function send({ method, path, body, signal }: EngineRequest): Promise<EngineResponse> {
    const response = await pool.request({
      method,
      path: `${prefix}${path}`,
      signal,
      ...(body && {
        headers: { ...body.headers, 'content-length': String(body.byteLength) },
        // A long body is not copied.
        body:
          body.byteLength > ENGINE_WHOLE_BODY_BYTES
            ? Readable.from(body.chunks)
            : Buffer.concat(body.chunks, body.byteLength),
      }),
    });
    const bytes = new Uint8Array(await response.body.arrayBuffer());
    return { status: response.statusCode, headers: response.headers, body: bytes };
  }

  return {
    request: (request: EngineRequest) => orAborted(send(request), request.signal),
    /** Fails every request in flight. */
    close: () => void pool.destroy(),
  };
}
