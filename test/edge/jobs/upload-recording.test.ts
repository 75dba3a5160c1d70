import { beforeEach, describe, expect, it } from 'vitest';
import { realRuntime } from '../../../edge/clock.ts';
import { HINTS_BYTES } from '../../../edge/http/caller-body.ts';
import type { ReadBytes } from '../../../edge/http/multipart.ts';
import { openFilePart } from '../../../edge/jobs/file-part.ts';
import { readBody } from '../../../edge/jobs/pass-through.ts';
import { ok } from '../../../shared/result.ts';
import { openSmall } from '../../../shared/seal/envelope-stream.ts';
import { generateZoneKey, importZoneKey } from '../../../shared/seal/zone-key.ts';
import { FakeFunctions } from '../../fake/functions.ts';
import { ask, elsewhere, startAgent } from '../../fake/network.ts';
import { makeContext } from '../../fake/request-context.ts';
import { makeToken } from '../authority.ts';

const unique = () => `model-${crypto.randomUUID().slice(0, 8)}`;
const bearer = async (claims = {}) => ({ authorization: `Bearer ${await makeToken(claims)}` });

let eu: FakeFunctions;
beforeEach(() => {
  eu = new FakeFunctions('eu');
});

/** Reads the outbox as an operator: a tenant's own read would add an event to it. */
const events = async (tenant: string) => {
  const headers = await bearer({ tenant: 'ops', scope: 'operate' });
  const page = (await (await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers })).json()) as {
    rows: { event: Record<string, unknown> }[];
  };
  return page.rows.map(({ event }) => event);
};

/** A store that keeps blocks, and what was made of them. */
function store() {
  const blocks = new Map<string, Uint8Array>();
  const kept = { file: undefined as Uint8Array<ArrayBuffer> | undefined, trouble: [] as number[], largest: 0, puts: 0 };
  elsewhere.set('storage.test', async (request) => {
    const url = new URL(request.url);
    const bytes = new Uint8Array(await request.arrayBuffer());
    kept.puts += 1;
    const trouble = kept.trouble.shift();
    if (trouble !== undefined) return new Response('', { status: trouble });
    expect([request.method, request.headers.get('x-ms-blob-type'), request.headers.get('authorization')]).toEqual([
      'PUT',
      null,
      null,
    ]);
    const id = url.searchParams.get('blockid');
    kept.largest = Math.max(kept.largest, bytes.length);
    if (id) blocks.set(id, bytes);
    else {
      const ids = [...new TextDecoder().decode(bytes).matchAll(/<Latest>([^<]+)</g)].map(([, one]) => one ?? '');
      const parts = ids.map((one) => blocks.get(one) as Uint8Array<ArrayBuffer>);
      kept.file = new Uint8Array(await new Blob(parts).arrayBuffer());
    }
    return new Response('', { status: 201 });
  });
  return kept;
}

const open = async (file: Uint8Array<ArrayBuffer> | undefined, id: string, privateJwk: JsonWebKey) => {
  const privateKey = await importZoneKey(privateJwk);
  const expected = { tenant: 'acme', upload: id, name: 'upload' };
  const body = new Blob([file as Uint8Array<ArrayBuffer>]).stream();
  const opened = await openSmall(body, { expected, known: () => privateKey }, 1e8);
  return opened.ok ? opened.value : undefined;
};

describe('C2 C11 T4 POST /v1/listen?callback=', () => {
  async function post(body: BodyInit, query = '', claims = {}) {
    const headers = { ...(await bearer(claims)), 'content-type': 'audio/wav' };
    const model = unique();
    await startAgent(model);
    const path = `/v1/listen?model=${model}&callback=${encodeURIComponent('https://hook.test/x')}${query}`;
    return ask(path, { method: 'POST', headers, body });
  }

  it('a client that leaves mid-body is no internal error', async () => {
    const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('lost')) });
    const request = new Request('http://edge.test/', { method: 'POST', body, ...({ duplex: 'half' } as object) });
    const { context } = makeContext({}, realRuntime);
    expect(await readBody(request, context)()).toMatchObject({ ok: false, refusal: { reason: 'client_slow' } });
  });

  it('becomes an upload, sealed to the key of its zone on the way', async () => {
    const { zoneKey: own, privateJwk } = await generateZoneKey();
    const kept = store();
    eu.key = own;
    const sound = new Uint8Array(5_000_000).map((_, at) => at % 251);
    eu.maxBytes = sound.length;
    kept.trouble = [503];
    const answer = await post(sound, '&language=en');
    expect(answer.status).toBe(200);
    const { request_id: id } = (await answer.json()) as { request_id: string };
    expect(answer.headers.get('dg-request-id')).toBe(id);
    expect(eu.requests[0]?.body).toMatchObject({
      id,
      sealed: true,
      language: 'en',
      contentType: 'audio/wav',
      callback: 'https://hook.test/x',
    });
    const opened = await open(kept.file, id, privateJwk);
    expect(opened?.length).toBe(sound.length);
    expect(opened?.every((byte, at) => byte === at % 251)).toBe(true);
    expect(kept.largest).toBeLessThanOrEqual(4 * 1_048_576);
  });

  it('leaves nothing behind when too large, empty or refused by storage', async () => {
    const kept = store();
    const tenant = `t-${unique()}`;
    eu.maxBytes = 1_000;
    expect(await (await post(new Uint8Array(2_000), '', { tenant, audit: 'strict' })).json()).toMatchObject({
      reason: 'upload_too_large',
    });
    expect(kept.file).toBeUndefined();
    expect(await (await post('')).json()).toMatchObject({ reason: 'audio_empty' });
    kept.trouble = [403];
    expect(await (await post(new Uint8Array(10))).json()).toMatchObject({ reason: 'uploads_unavailable' });
    expect(kept.file).toBeUndefined();
    const deleted = eu.requests.filter(({ line }) => line.startsWith('DELETE'));
    expect(deleted).toHaveLength(3);
    expect((await events(tenant)).at(-1)).toMatchObject({ type: 'inference.complete', reason: 'upload_too_large' });
  });

  it('C11 relays what is wrong with the callback, as /v1/uploads does', async () => {
    store();
    const rule = 'its address is not public';
    eu.refusal = { reason: 'callback_invalid', params: { rule } };
    const answer = await post(new Uint8Array(9));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ reason: 'callback_invalid', err_msg: expect.stringContaining(rule) });
    const model = unique();
    await startAgent(model);
    const body = JSON.stringify({ model, callback: 'https://10.0.0.1/' });
    const plain = await ask('/v1/uploads', { method: 'POST', headers: await bearer(), body });
    expect(plain.status).toBe(400);
    expect(await plain.json()).toMatchObject({ error: { code: 'callback_invalid', param: 'callback' } });
  });

  it('needs the scope of uploads, and a callback that is an address', async () => {
    store();
    expect((await post(new Uint8Array(9), '', { scope: 'transcribe' })).status).toBe(403);
    expect((await post(new Uint8Array(9), '', { sealing: 'client' })).status).toBe(403);
    expect((await post(new Uint8Array(9), '&redact=pii')).status).toBe(400);
    expect(eu.requests).toEqual([]);
  });
});

describe('C1 C2 T4 POST /v1/audio/transcriptions with x-auricle-upload', () => {
  const sound = new Uint8Array(300_000).map((_, at) => (at * 7) % 256);

  async function send(
    fields: [string, string][],
    after: [string, string][] = [],
    headers = {},
    claims = {},
    file = sound,
  ) {
    const form = new FormData();
    for (const [name, value] of fields) form.append(name, value);
    form.append('file', new Blob([file], { type: 'audio/wav' }), 'call.wav');
    for (const [name, value] of after) form.append(name, value);
    const all = { ...(await bearer(claims)), 'x-auricle-upload': 'true', ...headers };
    return ask('/v1/audio/transcriptions', { method: 'POST', headers: all, body: form });
  }

  it('makes an upload of the file, and says which', async () => {
    const { zoneKey, privateJwk } = await generateZoneKey();
    const kept = store();
    eu.key = zoneKey;
    eu.maxBytes = sound.length;
    const model = unique();
    await startAgent(model);
    const before: [string, string][] = [
      ['model', model],
      ['language', 'en'],
    ];
    for (const [fields, after, headers] of [
      [before, [['response_format', 'srt']], {}],
      [[], [['temperature', '0']], { 'x-auricle-model': model, 'x-auricle-language': 'en' }],
    ] as [[string, string][], [string, string][], Record<string, string>][]) {
      kept.file = undefined;
      eu.requests.length = 0;
      const answer = await send(fields, after, headers);
      expect(answer.status).toBe(202);
      const { id, status } = (await answer.json()) as { id: string; status: string };
      expect([status, answer.headers.get('location')]).toEqual(['uploaded', `http://edge.test/v1/uploads/${id}`]);
      expect(eu.requests[0]?.body).toMatchObject({
        model,
        language: 'en',
        filename: 'call.wav',
        contentType: 'audio/wav',
      });
      expect(await open(kept.file, id, privateJwk)).toEqual(sound);
    }
  });

  it('returns the upload’s id even when its state is unavailable', async () => {
    const kept = store();
    eu.maxBytes = sound.length;
    const model = unique();
    await startAgent(model);
    eu.ofRow = () => new Response('', { status: 503 });
    const answer = await send([['model', model]]);
    const body = (await answer.json()) as { id: string };
    expect([answer.status, body]).toEqual([202, { object: 'upload', id: expect.any(String) }]);
    expect(answer.headers.get('location')).toBe(`http://edge.test/v1/uploads/${body.id}`);
    expect(kept.file).toBeDefined();
    expect(eu.requests.filter(({ line }) => line.startsWith('DELETE'))).toEqual([]);
  });

  it('C1 takes model and language behind a file of at most 1 MiB', async () => {
    const { zoneKey, privateJwk } = await generateZoneKey();
    const kept = store();
    eu.key = zoneKey;
    eu.maxBytes = sound.length;
    const model = unique();
    await startAgent(model);
    const after: [string, string][] = [
      ['model', model],
      ['language', 'en'],
    ];
    const answer = await send([], after);
    expect(answer.status).toBe(202);
    const { id } = (await answer.json()) as { id: string };
    expect(eu.requests[0]?.body).toMatchObject({ model, language: 'en', filename: 'call.wav' });
    expect(await open(kept.file, id, privateJwk)).toEqual(sound);
  });

  it('needs the model, before a file over 8 MiB, and a whole form', async () => {
    store();
    const model = unique();
    await startAgent(model);
    const code = async (answer: Response) => ((await answer.json()) as { error: { code: string } }).error.code;
    const long = new Uint8Array(HINTS_BYTES + 1);
    expect(await code(await send([], [['model', model]], {}, {}, long))).toBe('hints_missing');
    expect(await code(await send([]))).toBe('field_missing');
    expect(await code(await send([['model', model]], [], {}, { scope: 'transcribe' }))).toBe('scope_missing');
    expect(await code(await send([['model', model]], [], {}, { sealing: 'client' }))).toBe('sealing_required');
    expect(await code(await send([['model', model]], [], { 'content-type': 'audio/wav' }))).toBe('content_type_wrong');
    expect(eu.requests).toEqual([]);
    const type = 'multipart/form-data; boundary=x';
    const head = `--x\r\ncontent-disposition: form-data; name="model"\r\n\r\n${model}\r\n--x`;
    const file = '\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nsound';
    const raw = async (body: string) =>
      code(
        await ask('/v1/audio/transcriptions', {
          method: 'POST',
          headers: { ...(await bearer()), 'x-auricle-upload': 'true', 'content-type': type },
          body,
        }),
      );
    expect(await raw(`${head}--`)).toBe('field_missing');
    expect(await raw(head)).toBe('form_invalid');
    expect(await raw(`${head}${file}`)).toBe('form_invalid');
    expect(await raw(`${head}${file}\r\n--x`)).toBe('form_invalid');
    expect(await raw(`${head}${file.replace('sound', '')}\r\n--x--`)).toBe('audio_empty');
    expect(eu.requests.filter(({ line }) => line.startsWith('DELETE'))).toHaveLength(3);
  });

  it('finds the same file however the form is cut', async () => {
    const text = [
      'a preamble',
      '--b',
      'content-disposition: form-data; name="model"',
      '',
      'one',
      '--b',
      'Content-Type: audio/wav',
      'Content-Disposition: form-data; name="file"; filename="x.wav"',
      '',
      'sound\r\n--a\r\n-',
      '--b',
      'content-disposition: form-data; name="late"',
      '',
      'two',
      '--b--',
      'an epilogue',
    ].join('\r\n');
    for (const size of [1, 2, 3, 7, 50, 1_000]) {
      const bytes = new TextEncoder().encode(text);
      let at = 0;
      const read: ReadBytes = async () => {
        const piece = bytes.subarray(at, at + size);
        at += size;
        return ok(piece.length > 0 ? piece : undefined);
      };
      const part = await openFilePart(read, 'b');
      if (!part.ok) throw new Error('refused');
      expect([...part.value.fields, part.value.filename, part.value.contentType]).toEqual([
        ['model', 'one'],
        'x.wav',
        'audio/wav',
      ]);
      let file = '';
      for (;;) {
        const piece = await part.value.read();
        if (!piece.ok) throw new Error(piece.refusal.reason);
        if (!piece.value) break;
        file += new TextDecoder().decode(piece.value);
      }
      expect(file).toBe('sound\r\n--a\r\n-');
    }
  });
});
