import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { commandLine } from '../../../infra/cli/command-line.ts';
import { showLogs } from '../../../infra/cli/logs.ts';
import { folderForTest } from '../local/folder.ts';

function stateWith(logs: Record<string, string>): string {
  const state = folderForTest();
  mkdirSync(path.join(state, 'logs'));
  for (const [part, text] of Object.entries(logs)) writeFileSync(path.join(state, 'logs', `${part}.log`), text);
  return state;
}

const logs = { blob: 'T1 one\nT3 three\n', edge: 'T2 two\n' };
const run = (state: string, ...words: string[]) => commandLine(['logs', '--state', state, ...words], {});

it('C10 logs shows all parts by time, without a running stack', async () => {
  const { exit, out } = await run(stateWith(logs));
  expect([exit, out.split('\n').map((line) => line.replace(/ +/g, ' '))]).toEqual([
    0,
    ['T1 blob one', 'T2 edge two', 'T3 blob three', ''],
  ]);
});

it('C10 logs shows one part as its file is', async () => {
  expect((await run(stateWith(logs), 'blob')).out).toBe(logs.blob);
});

it('C10 logs names the parts where it cannot find one', async () => {
  expect(await run(stateWith(logs), 'nope')).toMatchObject({
    exit: 1,
    err: 'there is no part nope; there are blob, edge\n',
  });
  expect((await run(folderForTest())).err).toContain('start the local stack');
});

it('U8 logs --follow prints whole new lines across a rotation and a truncation', async () => {
  const state = stateWith({ edge: 'T1 a long first line\n' });
  const given = readArguments(['logs', 'edge', '--follow', '--state', state]);
  if ('problem' in given) throw new Error(given.problem);
  const stop = new AbortController();
  const written: string[] = [];
  const following = showLogs(given, { write: (text) => void written.push(text), signal: stop.signal });
  const file = path.join(state, 'logs', 'edge.log');
  appendFileSync(file, 'T2 second\nT3 par');
  await expect.poll(() => written).toEqual(['T1 a long first line\n', 'T2 second\n']);
  appendFileSync(file, 'tial\n');
  renameSync(file, `${file}.1`);
  writeFileSync(file, 'T4 longer than the file before it\n');
  await expect.poll(() => written.slice(2)).toEqual(['T3 partial\n', 'T4 longer than the file before it\n']);
  writeFileSync(file, 'T5 new\n');
  await expect.poll(() => written.slice(4)).toEqual(['T5 new\n']);
  stop.abort();
  expect(await following).toMatchObject({ exit: 0 });
});
