// An OpenAI-compatible speech server: a word for each 0.4 s of the WAV file that it gets.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { WORD_SECONDS, WORDS } from './text-engine.ts';

export interface SpeechAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Record<string, string>;
}

export interface SeenForm {
  readonly fields: readonly (readonly [string, string])[];
  readonly seconds: number;
  readonly authorization: string | undefined;
}

export interface SpeechServer {
  readonly url: string;
  readonly seen: SeenForm[];
  /** Answer of `GET /v1/models`. */
  models: SpeechAnswer;
  /** Answers a form in place of the server; `undefined` leaves it to the server. */
  answer: (form: SeenForm) => SpeechAnswer | undefined;
  stop(): Promise<void>;
}

export const formatOf = ({ fields }: SeenForm): string =>
  fields
    .filter(([name]) => name === 'response_format' || name.startsWith('timestamp'))
    .map(([, value]) => value)
    .join(' ');

const HEADER_BYTES = 44;

/** Words with times, as OpenAI gives them: the text has capitals and punctuation, the words have not. */
function transcribe({ seconds }: SeenForm): SpeechAnswer {
  const words = WORDS.slice(0, Math.max(1, Math.floor(seconds / WORD_SECONDS))).map((word, i) => ({
    word,
    start: i * WORD_SECONDS,
    end: (i + 1) * WORD_SECONDS,
  }));
  const spoken = words.map(({ word }) => word).join(' ');
  return { status: 200, body: { text: ` ${spoken[0]?.toUpperCase()}${spoken.slice(1)}.`, words, segments: [] } };
}

export async function startSpeechServer(): Promise<SpeechServer> {
  const server: Omit<SpeechServer, 'url' | 'stop'> = {
    seen: [],
    models: { status: 200, body: { object: 'list', data: [{ id: 'Acme/Whisper-Tiny.en', object: 'model' }] } },
    answer: () => undefined,
  };
  const http = createServer(async (request, response) => {
    const send = ({ status, body, headers }: SpeechAnswer) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    if (request.url === '/v1/models') return send(server.models);
    if (request.url !== '/v1/audio/transcriptions') return send({ status: 404, body: { detail: 'Not Found' } });
    const headers = { 'content-type': request.headers['content-type'] ?? '' };
    const form = await new Response(Readable.toWeb(request) as ReadableStream<Uint8Array<ArrayBuffer>>, {
      headers,
    }).formData();
    const file = form.get('file') as File;
    const seen = {
      fields: [...form].filter((field): field is [string, string] => typeof field[1] === 'string'),
      seconds: (file.size - HEADER_BYTES) / 2 / 16_000,
      authorization: request.headers.authorization,
    };
    server.seen.push(seen);
    send(server.answer(seen) ?? transcribe(seen));
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const stop = () =>
    new Promise<void>((resolve) => {
      http.close(() => resolve());
      http.closeAllConnections();
    });
  return Object.assign(server, { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, stop });
}
