// The command line in this process: a process of its own costs more than most commands.
import { vi } from 'vitest';
import { commandLine } from '../../infra/cli/command-line.ts';
import type { Shared } from './running.ts';

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs one command with a token; `err` includes its progress. Commands of one file run one after the other. */
export async function runAuricle({ stack }: Shared, token: string, words: readonly string[]): Promise<Ended> {
  let progress = '';
  const stderr = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    progress += text;
    return true;
  });
  try {
    const { exit, out, err } = await commandLine(['--edge', stack.url, '--token', token, ...words], process.env);
    return { code: exit, out, err: progress + err };
  } finally {
    stderr.mockRestore();
  }
}
