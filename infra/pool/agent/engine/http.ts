import { Readable } from 'node:stream';
import { type Dispatcher, Pool } from 'undici';
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
  /** Headers beside those of the body. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Body;
  readonly signal: AbortSignal;
}

/** Connections beside those of inference, for readiness checks, loads and unloads. */
const SPARE_CONNECTIONS = 4;

const abortError = () => Object.assign(new Error('aborted'), { code: 'ABORT_ERR' });

/**
 * Gathers one response in memory, without the stream and the second listener that `Pool.request` makes for each.
 */
class ResponseReader implements Dispatcher.DispatchHandler {
  readonly #resolve: (response: EngineResponse) => void;
  readonly #reject: (error: Error) => void;
  readonly #signal: AbortSignal;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: EngineResponse['headers'] = {};

  constructor({ resolve, reject }: PromiseWithResolvers<EngineResponse>, signal: AbortSignal) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Rejects at once: undici keeps a queued request until it is its turn. */
  readonly #onAbort = () => {
    const error = abortError();
    this.#controller?.abort(error);
    this.#reject(error);
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#signal.aborted) controller.abort(abortError());
  }

  onResponseStart(_: unknown, status: number, headers: EngineResponse['headers']): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    const [only, ...others] = this.#chunks;
    const body = only && others.length === 0 ? only : Buffer.concat(this.#chunks);
    this.#resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_: unknown, error: Error): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#reject(error);
  }
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

  function request({ method, path, headers, body, signal }: EngineRequest): Promise<EngineResponse> {
    if (signal.aborted) return Promise.reject(abortError());
    const response = Promise.withResolvers<EngineResponse>();
    pool.dispatch(
      {
        method,
        path: `${prefix}${path}`,
        headers: { ...headers, ...(body && { ...body.headers, 'content-length': String(body.byteLength) }) },
        ...(body && {
          // A long body is not copied.
          body:
            body.byteLength > ENGINE_WHOLE_BODY_BYTES
              ? Readable.from(body.chunks)
              : Buffer.concat(body.chunks, body.byteLength),
        }),
      },
      new ResponseReader(response, signal),
    );
    return response.promise;
  }

  return {
    request,
    /** Fails every request in flight. */
    close: () => void pool.destroy(),
  };
}
