import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { BLOB_TRIES_MAX, createStorage } from '../../../../infra/pool/agent/storage/storage.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

type Answer = (incoming: IncomingMessage, response: ServerResponse) => void;

/** Storage that answers what it is told, one answer after the other, the last one for ever. */
async function open(...answers: Answer[]) {
  const seen: IncomingMessage[] = [];
  const server = createServer((incoming, response) => {
    seen.push(incoming);
    (answers.length > 1 ? answers.shift() : answers[0])?.(incoming, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/uploads/a?sig=secret`;
  return { url, seen, storage: createStorage({ retryMs: 1, idleMs: 2_000 }) };
}

const content = Buffer.from(Array.from({ length: 100_000 }, (_, i) => i & 255));
const whole: Answer = (_, response) => response.writeHead(200, { 'content-length': content.length }).end(content);
/** Sends some bytes and hangs up. */
const half: Answer = (incoming, response) => {
  const from = Number(/bytes=(\d+)-/.exec(incoming.headers.range ?? '')?.[1] ?? 0);
  response.writeHead(from > 0 ? 206 : 200, { 'content-length': content.length - from });
  response.write(content.subarray(from, from + 30_000), () => setImmediate(() => response.destroy()));
};
const rest: Answer = (incoming, response) => {
  const from = Number(/bytes=(\d+)-/.exec(incoming.headers.range ?? '')?.[1] ?? 0);
  response.writeHead(206, { 'content-length': content.length - from }).end(content.subarray(from));
};
const status =
  (code: number, error = ''): Answer =>
  (incoming, response) => {
    incoming.resume();
    incoming.on('end', () => response.writeHead(code, error ? { 'x-ms-error-code': error } : {}).end('<Error/>'));
  };

const forever = new AbortController().signal;

async function readAll({ storage, url }: Awaited<ReturnType<typeof open>>, etag?: string) {
  const source = storage.read({ url, ...(etag !== undefined && { etag }) }, forever);
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of source.body) chunks.push(chunk);
  } catch {
    return { bytes: Buffer.concat(chunks), failure: source.failure() };
  }
  expect(source.bytes()).toBe(Buffer.concat(chunks).length);
  return { bytes: Buffer.concat(chunks), failure: source.failure() };
}

describe('a blob is read', () => {
  it('in the version that was taken', async () => {
    const place = await open(whole);
    const read = await readAll(place, '"v1"');
    expect(read.bytes.equals(content)).toBe(true);
    expect(place.seen[0]?.headers['if-match']).toBe('"v1"');
  });

  it('on from where it broke, as often as it takes', async () => {
    const place = await open(half, half, status(503), rest);
    const read = await readAll(place, '"v1"');
    expect(read.failure).toBeUndefined();
    expect(read.bytes.equals(content)).toBe(true);
    const from = Number(/bytes=(\d+)-/.exec(place.seen.at(-1)?.headers.range ?? '')?.[1]);
    expect(from).toBeGreaterThan(0);
    expect(place.seen.at(-1)?.headers['if-match']).toBe('"v1"');
  });

  it('is never taken for whole when cut', async () => {
    const place = await open(half, status(500));
    const { failure, bytes } = await readAll(place);
    expect(failure).toMatchObject({ reason: 'uploads_unavailable' });
    expect(bytes.length).toBeLessThan(content.length);
    expect(place.seen).toHaveLength(BLOB_TRIES_MAX);
  });

  it('is not read again when gone or replaced', async () => {
    for (const [code, reason] of [
      [404, 'upload_audio_gone'],
      [412, 'upload_changed'],
    ] as const) {
      const place = await open(status(code));
      expect((await readAll(place)).failure?.reason).toBe(reason);
      expect(place.seen).toHaveLength(1);
    }
  });

  it('is refused when replaced while it was read', async () => {
    const place = await open(half, status(412));
    expect((await readAll(place, '"v1"')).failure?.reason).toBe('upload_changed');
  });

  it('is read as stored, without decompression', async () => {
    const packed = gzipSync(Buffer.alloc(1_000_000));
    const place = await open((_, response) =>
      response.writeHead(200, { 'content-length': packed.length, 'content-encoding': 'gzip' }).end(packed),
    );
    expect((await readAll(place)).bytes.equals(packed)).toBe(true);
  });

  it('empty', async () => {
    const place = await open((_, response) => response.writeHead(200, { 'content-length': 0 }).end());
    expect(await readAll(place)).toEqual({ bytes: Buffer.alloc(0), failure: undefined });
  });

  it('keeps its address out of errors', async () => {
    const place = await open(status(500));
    expect(JSON.stringify((await readAll(place)).failure)).not.toContain('sig=');
  });
});

const made = async () => ({
  length: content.length,
  body: new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(content);
      controller.close();
    },
  }),
});

describe('a blob is written once (C11)', () => {
  it('with its length, its metadata, and only where there is none', async () => {
    const got: Buffer[] = [];
    const place = await open((incoming, response) => {
      incoming.on('data', (chunk) => got.push(chunk));
      incoming.on('end', () => response.writeHead(201).end());
    });
    const metadata = { seconds: '4', reason: 'audio_empty' };
    expect(await place.storage.write(place.url, made, metadata, forever)).toEqual({ ok: true, value: 'written' });
    expect(Buffer.concat(got).equals(content)).toBe(true);
    expect(place.seen[0]?.headers).toMatchObject({
      'if-none-match': '*',
      'content-length': '100000',
      'x-ms-blob-type': 'BlockBlob',
      'x-ms-meta-seconds': '4',
      'x-ms-meta-reason': 'audio_empty',
    });
  });

  it.each([
    [409, 'BlobAlreadyExists'],
    [403, 'UnauthorizedBlobOverwrite'],
    [412, 'ConditionNotMet'],
  ])('%s %s counts as written', async (code, error) => {
    const place = await open(status(code, error));
    expect(await place.storage.write(place.url, made, {}, forever)).toEqual({ ok: true, value: 'exists' });
    expect(place.seen).toHaveLength(1);
  });

  it('is repeated with a new body when the result is unknown', async () => {
    let times = 0;
    const place = await open(
      status(500),
      (incoming, response) => incoming.on('end', () => response.destroy()).resume(),
      status(409, 'BlobAlreadyExists'),
    );
    const make = () => {
      times++;
      return made();
    };
    expect(await place.storage.write(place.url, make, {}, forever)).toEqual({ ok: true, value: 'exists' });
    expect(times).toBe(3);
  });

  it.each(['AuthenticationFailed', 'AuthorizationPermissionMismatch', ''])(
    'a 403 %s is final: neither written nor worth a retry',
    async (error) => {
      const place = await open(status(403, error));
      expect(await place.storage.write(place.url, made, {}, forever)).toEqual({ ok: true, value: 'closed' });
      expect(place.seen).toHaveLength(1);
    },
  );

  it('an address that expired after a lost answer is closed', async () => {
    const place = await open(
      (incoming, response) => incoming.on('end', () => response.destroy()).resume(),
      status(403, 'AuthenticationFailed'),
    );
    expect(await place.storage.write(place.url, made, {}, forever)).toEqual({ ok: true, value: 'closed' });
    expect(place.seen).toHaveLength(2);
  });

  it('a refusal before the whole body was sent is read', async () => {
    const large = 64 * 1024 * 1024;
    const place = await open((_, response) => {
      response.writeHead(409, { 'x-ms-error-code': 'BlobAlreadyExists', connection: 'close' }).end();
    });
    let sent = 0;
    const make = async () => ({
      length: large,
      body: new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            sent += 65_536;
            controller.enqueue(new Uint8Array(65_536));
            if (sent >= large) controller.close();
          },
        },
        { highWaterMark: 0 },
      ),
    });
    expect(await place.storage.write(place.url, make, {}, forever)).toEqual({ ok: true, value: 'exists' });
    expect(sent).toBeLessThan(large);
  });
});
