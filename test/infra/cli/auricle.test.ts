// The command line against a server that plays the edge.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { findToken, isToken } from '../../../infra/cli/token.ts';
import { ROOT } from '../../../infra/local/root.ts';
import { folderForTest } from '../local/folder.ts';

type Seen = { path: string; token: string | undefined; body: string };

let edge: Server;
let url: string;
let seen: Seen[] = [];
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  edge = createServer(async (request: IncomingMessage, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    seen.push({ path: request.url ?? '', token: request.headers.authorization, body });
    response.setHeader('content-type', 'application/json');
    answer(response);
  });
  await new Promise<void>((settle) => edge.listen(0, '127.0.0.1', settle));
  url = `http://127.0.0.1:${(edge.address() as AddressInfo).port}`;
});
afterAll(() => void edge.close());

function auricle(...given: string[]): Promise<{ code: number; out: string; err: string }> {
  seen = [];
  const { AURICLE_TOKEN: _, ...env } = process.env;
  return new Promise((settle) => {
    execFile('node', [path.join(ROOT, 'infra/cli/auricle.cjs'), ...given], { env }, (error, out, err) => {
      settle({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
    });
  });
}

const at = (...given: string[]) => auricle('--edge', url, '--token', 'T', ...given);

function recording(): string {
  const file = path.join(folderForTest(), 'a.wav');
  writeFileSync(file, 'RIFF....');
  return file;
}

describe('auricle transcribe', () => {
  it('sends the recording after what it is routed by, and prints the words', async () => {
    answer = (response) => response.end(JSON.stringify({ text: 'hello world' }));
    const { code, out } = await at('transcribe', recording(), '--model', 'm', '--language', 'en');
    expect([code, out]).toEqual([0, 'hello world\n']);
    const [request] = seen;
    expect(request).toMatchObject({ path: '/v1/audio/transcriptions', token: 'Bearer T' });
    const names = [...(request?.body.matchAll(/ name="(\w+)"/g) ?? [])].map((match) => match[1]);
    expect(names).toEqual(['model', 'language', 'response_format', 'file']);
    expect(request?.body).toContain('RIFF....');
  });

  it('prints the whole answer with --json', async () => {
    answer = (response) => response.end(JSON.stringify({ text: 'hello', usage: { seconds: 1 } }));
    const { out } = await at('transcribe', recording(), '--json');
    expect(JSON.parse(out)).toEqual({ text: 'hello', usage: { seconds: 1 } });
  });

  it('prints subtitles as they came', async () => {
    answer = (response) => {
      response.setHeader('content-type', 'text/vtt');
      response.end('WEBVTT\n\n');
    };
    expect((await at('transcribe', recording(), '--format', 'vtt')).out).toBe('WEBVTT\n');
  });

  it('gives the words of a refusal and the id of the request', async () => {
    answer = (response) => {
      response.writeHead(404, { 'x-request-id': 'r-1' });
      response.end(JSON.stringify({ error: { code: 'model_unknown', message: 'There is no model m.' } }));
    };
    const { code, out, err } = await at('transcribe', recording());
    expect([code, out, err]).toEqual([1, '', '404: There is no model m. (model_unknown), request r-1\n']);
    const asJson = await at('transcribe', recording(), '--json');
    expect(JSON.parse(asJson.out)).toMatchObject({ status: 404, request: 'r-1', error: { code: 'model_unknown' } });
  });

  it('says what is wrong with the command', async () => {
    expect(await at('transcribe')).toMatchObject({ code: 2, err: expect.stringContaining('transcribe FILE') });
    expect(await at('transcribe', 'none.wav')).toMatchObject({ code: 2, err: 'none.wav cannot be read\n' });
    expect(await at('transcribe', 'test')).toMatchObject({ code: 2, err: 'test is not a file\n' });
    expect(await at('sing')).toMatchObject({ code: 2, err: expect.stringContaining('no verb "sing"') });
    expect(await at('--loud')).toMatchObject({ code: 2, err: expect.stringContaining('--loud') });
  });
});

describe('auricle models', () => {
  it('lists them', async () => {
    answer = (response) => response.end(JSON.stringify({ object: 'list', data: [{ id: 'a' }, { id: 'b' }] }));
    expect((await at('models')).out).toBe('a\nb\n');
  });
});

describe('auricle', () => {
  it('explains itself', async () => {
    const { code, out } = await auricle('--help');
    expect(code).toBe(0);
    for (const verb of ['transcribe', 'models']) expect(out).toContain(verb);
    expect(await auricle('transcribe', '--help')).toMatchObject({
      code: 0,
      out: expect.stringContaining('--live FILE'),
    });
  });

  it('says when the edge cannot be reached', async () => {
    const { code, err } = await auricle('--edge', 'http://127.0.0.1:1', '--token', 'T', 'models');
    expect([code, err]).toEqual([1, expect.stringContaining('http://127.0.0.1:1 cannot be reached')]);
  });

  it('refuses an edge that speaks no HTTP, and what cannot be a token, before anything is sent', async () => {
    expect(readArguments(['--edge', 'ftp://x', 'models'])).toEqual({
      problem: '--edge ftp://x is no address of an edge: it begins with http:// or https://',
    });
    expect(readArguments(['load', '--warm-up', '-1'])).toEqual({
      problem: '--warm-up wants a value that does not begin with a dash',
    });
    for (const token of ['T\nx', 'T\u0007', 'two words', 'é']) expect(isToken(token)).toBe(false);
    expect(isToken('a.b-c_d=')).toBe(true);
    const { code, err } = await auricle('--edge', url, '--token', 'T\nx', 'load', '--audio', recording());
    expect([code, err, seen]).toEqual([2, expect.stringMatching(/^the token cannot be one: [^\n]+\n$/), []]);
  });

  it('sends the local token to the local stack only', () => {
    const local = () => 'local\n';
    expect(findToken({ edge: 'http://127.0.0.1:8787', token: undefined }, {}, local)).toBe('local');
    expect(findToken({ edge: 'https://edge.example', token: undefined }, {}, local)).toBeUndefined();
    expect(findToken({ edge: 'https://edge.example', token: undefined }, { AURICLE_TOKEN: 'e' }, local)).toBe('e');
    expect(findToken({ edge: 'https://edge.example', token: 'given' }, { AURICLE_TOKEN: 'e' }, local)).toBe('given');
  });
});

describe('auricle model', () => {
  it('lists all verbs where none is meant, and asks nobody for a token', async () => {
    for (const words of [['model'], ['model', 'nonsense']]) {
      const { code, err } = await auricle(...words, '--edge', 'http://127.0.0.1:1');
      expect(code).toBe(2);
      for (const verb of ['import', 'init', 'sign', 'promote', 'revisions']) expect(err).toContain(`model ${verb}`);
      expect(err).not.toContain('no token');
    }
  });

  it('blames no network for what is wrong here', async () => {
    const { code, err } = await at('model', 'sign', '/nope', '--key', '/nope.pem');
    expect([code, err]).toEqual([2, 'no such folder: /nope\n']);
    const key = await at('model', 'sign', folderForTest(), '--key', '/nope.pem');
    expect([key.code, key.err]).toEqual([2, 'no such file or folder: /nope.pem\n']);
    const { out } = await at('model', 'sign', '--help');
    expect(out).not.toMatch(/--edge|--token T/);
  });

  it('says that nothing of a name is registered', async () => {
    answer = (response) => response.end(JSON.stringify({ model: 'nosuch', seq: 0, at: 0, revisions: [], aliases: [] }));
    const { out } = await at('model', 'revisions', 'nosuch');
    expect(out).toBe('nothing is registered of the name nosuch\n');
  });
});
