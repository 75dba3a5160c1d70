// Output of the parts: one file per part under <state>/logs, which `onLine` receives too.
import { createWriteStream, existsSync, mkdirSync, renameSync, type WriteStream } from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';

/** Size at which a log file is moved to `.1`, bytes; the former `.1` is dropped: at most two per part. */
const FILE_BYTES_MAX = 8 * 1024 * 1024;
/** Length at which a line is cut, characters: a part that prints without newlines must not fill memory. */
const LINE_CHARS_MAX = 16 * 1024;

/** Writer of a line: the part itself, or its supervisor. */
export type LineSource = 'part' | 'supervisor';

export type Log = { file: string; line(text: string): void; follow(stream: Readable): void; close(): Promise<void> };

export function openLog(folder: string, name: string, onLine?: (text: string, source: LineSource) => void): Log {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, `${name}.log`);
  let { stream, bytes } = openFile(file);

  const write = (text: string, source: LineSource) => {
    const stamped = `${new Date().toISOString()} ${text}\n`;
    bytes += Buffer.byteLength(stamped);
    stream.write(stamped);
    if (bytes > FILE_BYTES_MAX) {
      stream.end();
      ({ stream, bytes } = openFile(file));
    }
    onLine?.(text, source);
  };

  return {
    file,
    line: (text) => write(text, 'supervisor'),
    follow(source) {
      let rest = '';
      source.setEncoding('utf8');
      source.on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n');
        rest = (lines.pop() ?? '').slice(0, LINE_CHARS_MAX);
        for (const text of lines) if (text.trim() !== '') write(text.slice(0, LINE_CHARS_MAX), 'part');
      });
      source.on('end', () => {
        if (rest.trim() !== '') write(rest, 'part');
        rest = '';
      });
      source.on('error', () => {});
    },
    close: () => new Promise((settle) => stream.end(() => settle())),
  };
}

function openFile(file: string): { stream: WriteStream; bytes: number } {
  if (existsSync(file)) renameSync(file, `${file}.1`);
  const stream = createWriteStream(file, { flags: 'a', mode: 0o600 });
  // A full disk must not take the stack down; `onLine` still has the line.
  stream.on('error', () => {});
  return { stream, bytes: 0 };
}
