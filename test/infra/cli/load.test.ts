// The load client against a server that plays the edge.
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { load } from '../../../infra/cli/load/load.ts';
import { expectedWords } from '../../../infra/cli/load/words.ts';
import type { Watched } from '../../../infra/cli/progress.ts';
import { folderForTest } from '../local/folder.ts';

let edge: Server;
let url: string;
let bodies: string[];
let inside: number;
let most: number;
/** Number of concurrent requests required before any is answered. */
let together: number;
let waiting: (() => void)[];
/** Status and body of the n-th request. */
let answer: (n: number) => [number, unknown];

beforeAll(async () => {
  edge = createServer(async (request, response) => {
    inside += 1;
    most = Math.max(most, inside);
    let body = '';
    for await (const chunk of request) body += chunk;
    bodies.push(body);
    const [status, value] = answer(bodies.length);
    const met = new Promise<void>((settle) => waiting.push(settle));
    if (waiting.length === together) for (const go of waiting.splice(0)) go();
    await met;
    inside -= 1;
    response
      .writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'r-1' })
      .end(JSON.stringify(value));
  });
  await new Promise<void>((settle) => edge.listen(0, '127.0.0.1', settle));
  url = `http://127.0.0.1:${(edge.address() as AddressInfo).port}`;
});
afterAll(() => {
  // Those that wait for others are cut off: a client that sends one by one must not keep the run from ending.
  edge.closeAllConnections();
  edge.close();
});
beforeEach(() => {
  bodies = [];
  inside = 0;
  most = 0;
  together = 1;
  waiting = [];
  answer = () => [200, { text: 'hello', duration: 1.5 }];
});

function run(...options: string[]) {
  return watched({}, ...options);
}

function watched(given: Watched, ...options: string[]) {
  const file = path.join(folderForTest(), 'a.wav');
  writeFileSync(file, 'RIFF....');
  const read = readArguments(['load', '--edge', url, '--audio', file, ...options]);
  if ('problem' in read) throw new Error(read.problem);
  return load(read, { authorization: 'Bearer T' }, given);
}

describe('R13: auricle load', () => {
  it('sends parallel × iterations requests after an uncounted warm-up', async () => {
    together = 3;
    const { exit, value, text } = await run('--parallel', '3', '--iterations', '4', '--warm-up', '2');
    expect(exit).toBe(0);
    expect(bodies).toHaveLength(3 * (2 + 4));
    expect(most).toBe(3);
    expect(value).toMatchObject({ parallel: 3, requests: 12, served: 12, audioSeconds: 18, warmUp: { requests: 6 } });
    expect(text).toContain('12 of 12 requests served, 3 at once');
    expect(text).toMatch(/ max [\d.]+ {2}mean [\d.]+\n/);
  });

  it('sends the given model and language', async () => {
    await run('--parallel', '1', '--iterations', '1', '--warm-up', '0', '--model', 'm', '--language', 'de');
    const names = [...(bodies[0]?.matchAll(/ name="(\w+)"/g) ?? [])].map((match) => match[1]);
    expect(names).toEqual(['model', 'language', 'response_format', 'file']);
    expect(bodies[0]).toContain('RIFF....');
  });

  it('counts refusals by code, others by status, and none as success', async () => {
    answer = (n) => {
      if (n === 1) return [429, { error: { code: 'allowance_requests', message: 'Too many.' } }];
      return n === 2 ? [502, 'from some proxy'] : [200, { text: '', usage: { seconds: 2 } }];
    };
    const { exit, value, text } = await run('--parallel', '1', '--iterations', '3', '--warm-up', '0');
    expect(exit).toBe(1);
    expect(value).toMatchObject({ served: 1, audioSeconds: 2, errors: { allowance_requests: 1, http_502: 1 } });
    expect(text).toContain('error       allowance_requests: 1 (Too many, request r-1)\n');
    expect(text).toContain(`http_502: 1 (${url}/v1/audio/transcriptions answers 502 Bad Gateway, request r-1)`);
    expect(value).toHaveProperty('messages.allowance_requests', 'Too many, request r-1');
  });

  it('compares the words, without case and punctuation', async () => {
    answer = (n) => [200, { text: n === 2 ? 'Hello, wide world.' : 'Hello, world.', duration: 1 }];
    const once = ['--parallel', '1', '--iterations', '2', '--warm-up', '0'];
    const { exit, value, text } = await run(...once, '--expect', 'hello world');
    expect([exit, value]).toMatchObject([1, { served: 1, errors: { words_differ: 1 } }]);
    expect(text).toContain('words_differ: 1 (word 2 is "wide", and "world" was expected)');
    expect(await run(...once)).toMatchObject({ exit: 0, value: { errors: {} } });
    expect(await run(...once, '--expect', 'x', '--format', 'srt')).toMatchObject({ exit: 2 });
  });

  it('finds the expected words beside the recording', () => {
    const audio = path.join(folderForTest(), 'a.wav');
    expect(expectedWords({ audio, expect: undefined })).toBeUndefined();
    writeFileSync(audio.replace('.wav', '.txt'), "It's ten, Ärzte!\n");
    expect(expectedWords({ audio, expect: undefined })).toEqual(["it's", 'ten', 'ärzte']);
    expect(expectedWords({ audio, expect: 'own' })).toEqual(['own']);
  });

  it('counts an edge that is not there', async () => {
    const closed = createServer();
    await new Promise<void>((settle) => closed.listen(0, '127.0.0.1', settle));
    const nowhere = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`;
    await new Promise((settle) => closed.close(settle));
    const { value } = await run('--edge', nowhere, '--parallel', '1', '--iterations', '1', '--warm-up', '0');
    expect(value).toMatchObject({ served: 0, errors: { ECONNREFUSED: 1 }, latency: undefined });
    const said = `${nowhere}/v1/audio/transcriptions cannot be reached: connection refused`;
    expect(value).toHaveProperty('messages.ECONNREFUSED', said);
  });

  it('measures nothing after a warm-up without a served request', async () => {
    answer = () => [401, { error: { code: 'token_invalid', message: 'The token is not valid.' } }];
    const { exit, value, text } = await run('--parallel', '3', '--iterations', '50', '--warm-up', '1');
    expect([exit, bodies.length]).toEqual([1, 3]);
    expect(value).toMatchObject({ warmUp: { served: 0, errors: { token_invalid: 3 } } });
    expect(text.split('\n')).toEqual([
      'none of the 3 requests of the warm-up was served, so nothing was measured',
      'error       token_invalid: 3 (The token is not valid, request r-1)',
    ]);
  });

  it('prints results when interrupted, and progress on a terminal only', async () => {
    const interrupt = new AbortController();
    answer = (n) => {
      if (n === 5) interrupt.abort();
      return [200, { text: '', duration: 1 }];
    };
    const shown: string[] = [];
    const screen = { isTTY: true, write: (text: string) => shown.push(text) };
    const given = ['--parallel', '1', '--iterations', '100', '--warm-up', '0'];
    const { exit, value, text } = await watched({ signal: interrupt.signal, screen }, ...given);
    expect([exit, value]).toEqual([130, expect.objectContaining({ requests: 4, served: 4, interrupted: true })]);
    expect(text).toMatch(/^interrupted: 4 of 4 requests served/);
    expect([shown[0], shown.at(-1)]).toEqual([expect.stringContaining('1 of 100 requests'), '\r\u001b[2K']);
    shown.length = 0;
    await watched({ screen: { ...screen, isTTY: false } }, '--parallel', '1', '--iterations', '2');
    expect(shown).toEqual([]);
  });

  it.each([
    ['--parallel', '0'],
    ['--iterations', 'many'],
    ['--warm-up', '-1'],
  ])('refuses %s %s', async (name, value) => {
    expect(await run(`${name}=${value}`)).toMatchObject({ exit: 2, text: expect.stringContaining(name) });
    expect(bodies).toEqual([]);
  });

  it('refuses a file that is not there', async () => {
    expect(await run('--audio', 'none.wav')).toMatchObject({ exit: 2, text: 'none.wav cannot be read' });
  });
});
