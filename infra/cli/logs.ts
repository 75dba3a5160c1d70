// auricle logs [PART]: the log files of the local stack's parts.
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, impossible } from './answer.ts';
import type { Arguments } from './options.ts';

/** Last lines that are shown: a screen or two. */
const LINES = 50;
/** Interval of looks at the files, ms: quick to a reader, and little work. */
const LOOK_MS = 250;

/** Runtime of the command, which tests replace. */
export interface LogReader {
  readonly write: (text: string) => void;
  readonly signal: AbortSignal;
}

export async function showLogs(given: Arguments, { write, signal }: LogReader): Promise<Answer> {
  const folder = path.join(given.state, 'logs');
  const [part] = given.operands;
  const parts = partsIn(folder);
  if (parts.length === 0) return impossible(`${folder} has no logs: start the local stack with \`npm start\``);
  if (part !== undefined && !parts.includes(part))
    return impossible(`there is no part ${part}; there are ${parts.join(', ')}`);
  const shown = part === undefined ? parts : [part];
  const read = new Map<string, number>();
  // Each line begins with its time, which sorts as text.
  const next = () =>
    shown
      .flatMap((name) => readNew(folder, name, read).map(labelled(name, part)))
      .sort((a, b) => (a.time < b.time ? -1 : 1))
      .map((line) => line.text);
  const last = next().slice(-LINES);
  if (!given.follow) return { exit: 0, text: last.join('\n'), value: { lines: last } };
  for (const line of last) write(`${line}\n`);
  while (!signal.aborted) {
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    for (const line of next()) write(`${line}\n`);
  }
  return { exit: 0, text: '', value: { lines: [] } };
}

const partsIn = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith('.log'))
        .map((name) => name.slice(0, -'.log'.length))
        .sort()
    : [];

/** Returns a line with its time; with its part, too, where several are shown. */
const labelled = (part: string, only: string | undefined) => (line: string) => {
  const [time = '', ...rest] = line.split(' ');
  return { time, text: only === undefined ? `${time} ${part.padEnd(22)} ${rest.join(' ')}` : line };
};

/** Returns the whole lines behind the offset in `read`, and moves it. A smaller file was begun again. */
function readNew(folder: string, part: string, read: Map<string, number>): string[] {
  const file = path.join(folder, `${part}.log`);
  const size = existsSync(file) ? statSync(file).size : 0;
  const before = read.get(part) ?? 0;
  const from = size < before ? 0 : before;
  if (size === from) return [];
  const bytes = Buffer.alloc(size - from);
  const descriptor = openSync(file, 'r');
  const count = readSync(descriptor, bytes, 0, bytes.length, from);
  closeSync(descriptor);
  const end = bytes.subarray(0, count).lastIndexOf(10) + 1;
  read.set(part, from + end);
  return bytes.subarray(0, end).toString('utf8').split('\n').filter(Boolean);
}
