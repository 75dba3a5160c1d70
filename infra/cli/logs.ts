// auricle logs [PART]: the log files of the local stack's parts.
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
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
  const read = new Map<string, Position>();
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

/** Inode of a log file, and the offset behind its last whole line. */
interface Position {
  readonly inode: number;
  readonly offset: number;
}

/** Returns the whole lines behind the position in `read`, and moves it. The rest of a rotated file comes first. */
function readNew(folder: string, part: string, read: Map<string, Position>): string[] {
  const file = path.join(folder, `${part}.log`);
  // A rotation leaves no file for a moment.
  if (!existsSync(file)) return [];
  const before = read.get(part);
  const now = readLines(file, before);
  read.set(part, now);
  const isNew = before !== undefined && before.inode !== now.inode;
  const old = isNew && existsSync(`${file}.1`) ? readLines(`${file}.1`, before) : undefined;
  return [...(old && old.inode === before?.inode ? old.lines : []), ...now.lines];
}

/** Reads a file's whole lines: behind the position when it is of this file and not beyond its end, or all. */
function readLines(file: string, before: Position | undefined): Position & { readonly lines: string[] } {
  const descriptor = openSync(file, 'r');
  const { ino: inode, size } = fstatSync(descriptor);
  const from = before?.inode === inode && before.offset <= size ? before.offset : 0;
  const bytes = Buffer.alloc(size - from);
  const count = readSync(descriptor, bytes, 0, bytes.length, from);
  closeSync(descriptor);
  const end = bytes.subarray(0, count).lastIndexOf(10) + 1;
  const lines = bytes.subarray(0, end).toString('utf8').split('\n').filter(Boolean);
  return { inode, offset: from + end, lines };
}
