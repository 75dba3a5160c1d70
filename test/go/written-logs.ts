// Logs as their readers would fetch them, written into folders that Go's verifier reads.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { formatVerifierKey } from '../../shared/audit/note-key.ts';
import type { MemoryStore } from '../fake/log-store.ts';

export function write(folder: string, name: string, bytes: Uint8Array | string): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, bytes);
}

/** The log of a year: its tiles, its checkpoint, all that were ever signed, and its key beside them. */
function writeLog(store: MemoryStore, zone: string, year: number, folder: string, publicKey: Uint8Array): string {
  write(folder, 'vkey', formatVerifierKey(`audit.example/${zone}/${year}`, publicKey));
  for (const area of ['state', 'log'] as const) {
    for (const [name, { bytes }] of store.area(area)) {
      const prefix = `${zone}/${year}/`;
      if (name.startsWith(prefix)) write(folder, name.slice(prefix.length), bytes);
    }
  }
  return folder;
}

/** All logs of a storage, of every zone and year that has a checkpoint. */
export function writeLogs(store: MemoryStore, under: string, publicKey: Uint8Array): string[] {
  return [...store.area('state').keys()].flatMap((name) => {
    const [, zone = '', year] = /^([^/]+)\/(\d{4})\/checkpoint$/.exec(name) ?? [];
    return year === undefined ? [] : [writeLog(store, zone, Number(year), path.join(under, zone, year), publicKey)];
  });
}
