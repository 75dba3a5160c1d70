import { readFileSync } from 'node:fs';

/** Reads the pool token; its file may be renewed at any time. */
export const readPoolToken = (file: string): string => readFileSync(file, 'utf8').trim();
