// The command line against a server that plays the edge.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { takenBy } from '../../../infra/cli/command.ts';
import { commandLine } from '../../../infra/cli/command-line.ts';
import { commands, findCommand } from '../../../infra/cli/commands.ts';
import { flagOf } from '../../../infra/cli/options.ts';
import { findToken, isToken } from '../../../infra/cli/token.ts';
import { ROOT } from '../../../infra/local/root.ts';
import { folderForTest } from '../local/folder.ts';

type Seen = { path: string; token: string | undefined; body: string };

let edge: Server;
let url: string;
let seen: Seen[] = [];
let answer: (response: ServerResponse, request: IncomingMessage) => void;

beforeAll(async () => {
  edge = createServer(async (request: IncomingMessage, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    seen.push({ path: request.url ?? '', token: request.headers.authorization, body });
    response.setHeader('content-type', 'application/json');
    answer(response, request);
  });
  await new Promise<void>((settle) => edge.listen(0, '127.0.0.1', settle));
  url = `http://127.0.0.1:${(edge.address() as AddressInfo).port}`;
});
afterAll(() => void edge.close());

async function run(env: Record<string, string>, ...given: string[]) {
  seen = [];
  const { exit, ...printed } = await commandLine(given, env);
  return { code: exit, ...printed };
}
const auricle = (...given: string[]) => run({}, ...given);
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
    expect(asJson.out).toBe('');
    expect(JSON.parse(asJson.err)).toMatchObject({ status: 404, request: 'r-1', error: { code: 'model_unknown' } });
  });

  it('says what is wrong with the command', async () => {
    expect(await at('transcribe')).toMatchObject({ code: 2, err: expect.stringContaining('transcribe FILE') });
    expect(await at('transcribe', 'none.wav')).toMatchObject({ code: 2, err: 'none.wav cannot be read\n' });
    expect(await at('transcribe', 'test')).toMatchObject({ code: 2, err: 'test is not a file\n' });
    expect(await at('sing')).toMatchObject({ code: 2, err: expect.stringContaining('no command "sing"') });
    expect(await at('--loud')).toMatchObject({ code: 2, err: expect.stringContaining('--loud') });
    expect(await at('transcribe', 'a.wav', '--iterations', '3')).toMatchObject({
      code: 2,
      err: "Unknown option '--iterations'; `auricle help transcribe` explains\n",
    });
  });
});

describe('auricle models', () => {
  it('lists them', async () => {
    answer = (response) => response.end(JSON.stringify({ object: 'list', data: [{ id: 'a' }, { id: 'b' }] }));
    expect((await at('models')).out).toBe('a\nb\n');
  });
});

describe('A21 R13 auricle', () => {
  it('explains every command and each of its options', async () => {
    const all = (await auricle('help')).out;
    expect([(await auricle('--help')).out, (await auricle()).err]).toEqual([all, all]);
    for (const command of commands) {
      const words = command.name.split(' ');
      expect(all, command.name).toContain(`  ${words[0]} `);
      const { code, out } = await auricle('help', ...words);
      const own = Object.keys(command.own ?? {});
      const names = command.own ? own : [...takenBy(command), 'json', 'help'].map(flagOf);
      for (const name of names)
        expect(out, command.name).toMatch(new RegExp(`^ .*--${name}\\b.*(\\n {26})? *\\S`, 'm'));
      expect([code, out.includes(command.does)]).toEqual([0, true]);
      if (findCommand(words) === command && words.length === 2)
        expect((await auricle(...words, '--help')).out, command.name).toBe(out);
    }
    expect((await auricle('help', 'audit')).out).toContain('audit export');
    expect(await auricle('help', 'audit', 'sing')).toMatchObject({ code: 2, out: '' });
    expect(await auricle('help', 'sing')).toMatchObject({ code: 2, err: expect.stringContaining('no command "sing"') });
  });

  it('prints its version', async () => {
    const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
    for (const words of [['--version'], ['version'], ['help', 'version']])
      expect(await auricle(...words)).toEqual({ code: 0, out: `auricle ${version}\n`, err: '' });
    expect(JSON.parse((await auricle('--version', '--json')).out)).toEqual({ version });
  });

  it('prints every error on stderr, with --json as JSON', async () => {
    for (const words of [
      ['sing'],
      ['models', 'more'],
      ['--loud'],
      ['audit'],
      ['audit', 'sing'],
      ['upload', 'none.wav'],
    ]) {
      const { code, out, err } = await at(...words, '--json');
      expect([code, out], words.join(' ')).toEqual([2, '']);
      expect(JSON.parse(err), words.join(' ')).toMatchObject({ error: { message: expect.any(String) } });
    }
    answer = (response) => response.end('"something else"');
    expect(await at('models')).toEqual({ code: 1, out: '', err: `${url} does not answer like an edge\n` });
  });

  it('asks the edge of AURICLE_EDGE, and an option comes first', async () => {
    answer = (response) => response.end(JSON.stringify({ data: [{ id: 'a' }] }));
    const env = { AURICLE_EDGE: url, AURICLE_TOKEN: 'E' };
    expect((await run(env, 'models')).out).toBe('a\n');
    expect(seen[0]?.token).toBe('Bearer E');
    expect((await run({ ...env, AURICLE_EDGE: 'http://127.0.0.1:1' }, '--edge', url, 'models')).code).toBe(0);
    const { code, err } = await run({ AURICLE_EDGE: 'nowhere' }, 'models');
    expect([code, err]).toEqual([2, expect.stringContaining('AURICLE_EDGE nowhere is not a URL')]);
  });

  it('finds address and token of the stack of --state', async () => {
    const state = folderForTest();
    writeFileSync(path.join(state, 'token'), 'local\n');
    const stopped = await auricle('--state', state, 'models');
    expect([stopped.code, stopped.err]).toEqual([2, expect.stringContaining('no stack runs in --state')]);
    writeFileSync(path.join(state, 'stack.json'), JSON.stringify({ pid: 1, url }));
    answer = (response) => response.end(JSON.stringify({ data: [] }));
    expect((await run({ AURICLE_EDGE: 'http://127.0.0.1:1' }, '--state', state, 'models')).code).toBe(0);
    expect(seen[0]?.token).toBe('Bearer local');
    // Its token goes to no other edge.
    const other = await auricle('--state', state, '--edge', 'http://127.0.0.1:1', 'models');
    expect([other.code, other.err]).toEqual([2, expect.stringContaining('no token')]);
  });

  it('says when the edge cannot be reached', async () => {
    const { code, err } = await auricle('--edge', 'http://127.0.0.1:1', '--token', 'T', 'models');
    expect([code, err]).toEqual([1, expect.stringContaining('http://127.0.0.1:1 cannot be reached')]);
  });

  it('refuses a non-HTTP edge and a malformed token before any request', async () => {
    expect(readArguments(['--edge', 'ftp://x', 'models'])).toEqual({
      problem: '--edge ftp://x is no address of an edge: it begins with http:// or https://',
    });
    expect(readArguments(['load', '--warm-up', '-1'])).toEqual({
      problem: '--warm-up wants a value that does not begin with a dash',
    });
    for (const token of ['T\nx', 'T\u0007', 'two words', 'é']) expect(isToken(token)).toBe(false);
    expect(isToken('a.b-c_d=')).toBe(true);
    const { code, err } = await auricle('--edge', url, '--token', 'T\nx', 'load', '--audio', recording());
    expect([code, err, seen]).toEqual([2, expect.stringMatching(/^the token is malformed: [^\n]+\n$/), []]);
  });

  it('sends the local token to the local stack only', () => {
    const state = folderForTest();
    writeFileSync(path.join(state, 'token'), 'local\n');
    const find = (isLocalEdge: boolean, env = {}, token?: string) => findToken({ isLocalEdge, state, token }, env);
    expect([find(true), find(false)]).toEqual(['local', undefined]);
    expect([find(false, { AURICLE_TOKEN: 'e' }), find(true, { AURICLE_TOKEN: 'e' }, 'given')]).toEqual(['e', 'given']);
  });
});

describe('auricle model', () => {
  it('lists all verbs where none is given, and needs no token', async () => {
    for (const words of [['model'], ['model', 'nonsense']]) {
      const { code, err } = await auricle(...words, '--edge', 'http://127.0.0.1:1');
      expect(code).toBe(2);
      for (const verb of ['import', 'init', 'sign', 'promote', 'revisions']) expect(err).toContain(`model ${verb} `);
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

  it.each(['revisions', 'log', 'export'])('fails for %s of a model without a revision', async (verb) => {
    const none = { model: 'nosuch', seq: 0, at: 0, revisions: [], aliases: [], entries: [] };
    let status = 404;
    answer = (response, { url = '' }) => {
      if (url.endsWith('/nosuch')) response.statusCode = status;
      response.end(JSON.stringify(none));
    };
    const unknown = 'there is no model nosuch: no revision is registered under that name\n';
    expect(await at('model', verb, 'nosuch')).toEqual({ code: 1, out: '', err: unknown });
    status = 200;
    const served = 'nosuch is served unregistered: it has no registered revision\n';
    expect(await at('model', verb, 'nosuch')).toEqual({ code: 1, out: '', err: served });
  });
});

describe('U3 auricle name', () => {
  const names = [
    { name: 'whisper-1', model: 'a', since: 1 },
    { name: 'whisper-1', tenant: 'acme', model: 'b', since: 1 },
  ];
  const answerNames = (response: ServerResponse, { method }: IncomingMessage) =>
    response.end(JSON.stringify(method === 'GET' ? { data: names } : { name: 'whisper-1', model: 'm', since: 2 }));

  it('moves a name from the model that it has', async () => {
    answer = answerNames;
    expect((await at('name', 'set', 'whisper-1', 'm', '--tenant', 'acme')).out).toBe('whisper-1 for acme: b → m\n');
    expect(JSON.parse(seen[1]?.body ?? '')).toEqual({ name: 'whisper-1', tenant: 'acme', from: 'b', model: 'm' });
    expect((await at('name', 'list')).out).toBe('whisper-1 → a\nwhisper-1 for acme → b\n');
  });

  it('removes a name, and refuses one without a model', async () => {
    answer = answerNames;
    await at('name', 'remove', 'whisper-1');
    expect(JSON.parse(seen[1]?.body ?? '')).toEqual({ name: 'whisper-1', from: 'a' });
    expect((await at('name', 'remove', 'nova-3')).code).toBe(1);
    expect(seen).toHaveLength(1);
  });
});
