import { execFile } from 'node:child_process';

/** Longest single step: a download of 55 MB on a slow line, in milliseconds. */
const STEP_MS_MAX = 300_000;

export type Ran = { ok: true; output: string } | { ok: false; missing: boolean; lastLine: string };

/** Runs a command to its end. `lastLine` is what it complained about, for a message of one line. */
export function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { env, timeout: STEP_MS_MAX, maxBuffer: 16 * 2 ** 20 };
    execFile(command, args, options, (error, stdout, stderr) => {
      if (!error) return resolve({ ok: true, output: stdout });
      const lines = stderr.trim().split('\n').filter(Boolean);
      const lastLine = lines.findLast((line) => /^error/i.test(line)) ?? lines.at(-1) ?? error.message;
      const missing = error.code === 'ENOENT';
      resolve({ ok: false, missing, lastLine: error.killed ? `gave up after ${STEP_MS_MAX / 1000} s` : lastLine });
    });
  });
}
