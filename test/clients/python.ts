import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { bytecode, type Environment, interpreterOf } from './install.ts';

/** A Python process that runs functions of one file, one at a time, any number of times. */
export interface Python {
  /** The function's result; rejects with what it raised. */
  call<T>(name: string, given?: Record<string, unknown>): Promise<T>;
  end(): void;
}

type Answer = { readonly value: unknown } | { readonly raised: string };

/** Starts `file`.py beside this one. `env` has the addresses of the stack. */
export function startPython(file: string, env: Record<string, string>, environment: Environment = 'clients'): Python {
  const script = path.join(import.meta.dirname, 'drive.py');
  const child = spawn(interpreterOf(environment), ['-u', script, file], {
    env: { ...process.env, ...env, ...bytecode },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waiting: { resolve: (value: unknown) => void; reject: (error: Error) => void }[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    const said = JSON.parse(line) as Answer;
    const { resolve, reject } = waiting.shift() as (typeof waiting)[number];
    if ('raised' in said) reject(new Error(said.raised));
    else resolve(said.value);
  });
  let ended: Error | undefined;
  child.on('exit', (code) => {
    ended = new Error(`${file}.py ended with ${code}`);
    for (const { reject } of waiting.splice(0)) reject(ended);
  });
  return {
    call: (name, given = {}) =>
      new Promise((resolve, reject) => {
        if (ended) return reject(ended);
        waiting.push({ resolve: resolve as (value: unknown) => void, reject });
        child.stdin.write(`${JSON.stringify({ name, given })}\n`);
      }),
    end: () => void child.stdin.end(),
  };
}
