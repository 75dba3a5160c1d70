import { Readable } from 'node:stream';
import { Pool } from 'undici';
import type { Body } from '../../../../shared/kserve/body.ts';
import { limits } from '../../../../shared/limits.ts';

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

/** Connections beside those of inference, for readiness checks. */
const SPARE_CONNECTIONS = 4;

/** Settles as `work` does, or rejects as soon as `signal` aborts: undici keeps a queued request until it is its turn. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
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
    keepAliveTimeout: limits.engineRestMs.value,
    keepAliveTimeoutThreshold: limits.engineRestMarginMs.value,
    maxHeaderSize: limits.engineHeadBytes.value,
    maxResponseSize: limits.engineAnswerBytes.value,
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
          body.byteLength > limits.engineWholeBytes.value
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
