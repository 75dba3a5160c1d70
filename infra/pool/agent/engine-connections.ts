import { Readable } from 'node:stream';
import { type Dispatcher, Pool } from 'undici';
import type { Body } from '../../../shared/kserve/body.ts';
import { limits } from '../../../shared/limits.ts';
import { concat } from '../../../shared/seal/bytes.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
}

export interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: Body;
  readonly signal: AbortSignal;
}

const aborted = () => Object.assign(new Error('aborted'), { code: 'ABORT_ERR' });

function optionsOf({ byteLength, chunks, headers }: Body) {
  const body = byteLength <= limits.engineWholeBytes.value ? concat(...chunks) : Readable.from(chunks);
  return { body, headers: { ...headers, 'content-length': String(byteLength) } };
}

/**
 * Connections to one HTTP server that are kept for the next call; each has one call at a time. They last as long as a
 * caller waits, so only `signal` bounds a call. Aborting drops its connection.
 */
export function openConnections(url: string, connections: number) {
  const { origin, pathname } = new URL(url);
  const prefix = pathname.replace(/\/$/, '');
  const pool = new Pool(origin, {
    connections: connections + 4,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: limits.engineAnswerBytes.value,
  });

  /** Rejects only when there is no answer. */
  function call({ method, path, body, signal }: Call): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(aborted());
      let controller: Dispatcher.DispatchController | undefined;
      let status = 0;
      let headers: Answer['headers'] = {};
      const parts: Uint8Array[] = [];
      const abort = () => {
        reject(aborted());
        controller?.abort(aborted());
      };
      signal.addEventListener('abort', abort, { once: true });
      const over = () => signal.removeEventListener('abort', abort);
      pool.dispatch(
        { method, path: prefix + path, ...(body && optionsOf(body)) },
        {
          onRequestStart(started) {
            controller = started;
            if (signal.aborted) controller.abort(aborted());
          },
          onResponseStart(_, code, received) {
            status = code;
            headers = received;
          },
          onResponseData(_, chunk) {
            parts.push(chunk);
          },
          onResponseEnd() {
            over();
            const [only] = parts;
            resolve({ status, headers, body: only && parts.length === 1 ? only : concat(...parts) });
          },
          onResponseError(_, error) {
            over();
            reject(error);
          },
        },
      );
    });
  }

  return { call, close: () => void pool.destroy() };
}
