// Local store of the key and checkpoint last seen of each log. It reveals a log that shrank or changed its
// key.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';

export interface Remembered {
  readonly vkey: string;
  /** The signed checkpoint. */
  readonly note: string;
}

const folder = (): string => process.env.AURICLE_AUDIT ?? path.join(os.homedir(), '.auricle', 'audit');

/** Identifies a log by its URL, not by the name that it claims. */
export const fileOf = (base: string): string => path.join(folder(), `${encodeURIComponent(base)}.json`);

export function recall(base: string): Remembered | undefined {
  try {
    const { vkey, note } = JSON.parse(readFileSync(fileOf(base), 'utf8')) as Partial<Remembered>;
    return typeof vkey === 'string' && typeof note === 'string' ? { vkey, note } : undefined;
  } catch {
    return undefined;
  }
}

/** Writes atomically. */
export function remember(base: string, seen: Remembered): void {
  const file = fileOf(base);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(`${file}.${process.pid}.new`, JSON.stringify(seen));
  renameSync(`${file}.${process.pid}.new`, file);
}
