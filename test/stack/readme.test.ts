import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { announce } from '../../infra/local/announce.ts';
import { readModels } from '../../infra/local/serving.ts';
import { clips } from './clips.ts';
import { join } from './join.ts';
import type { Shared } from './running.ts';

// Runs every example of README and guide that talks to a running stack, and compares its output with the block that
// follows it. `…` in an expected output matches anything.

const root = path.join(import.meta.dirname, '..', '..');
const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
const guide = readFileSync(path.join(root, '.github/GUIDE.md'), 'utf8');

interface Example {
  readonly command: string;
  readonly output: string | undefined;
}

/** Shell blocks, each with the block right after it when that is output. */
function examples(text: string): Example[] {
  const blocks = [...text.matchAll(/```(\w+)\n([\s\S]*?)```/g)];
  return blocks.flatMap((block, index) => {
    if (block[1] !== 'sh') return [];
    const next = blocks[index + 1];
    const between = next && text.slice((block.index ?? 0) + block[0].length, next.index).trim();
    const follows = next && next[1] !== 'sh' && between === '';
    return [{ command: (block[2] ?? '').trim(), output: follows ? next[2] : undefined }];
  });
}

// Blocks that no test can run, each with its reason.
const elsewhere: [RegExp, string][] = [
  [/npm ci && npm (start|test)/, 'installs; .ci/run does it on a clean checkout'],
  [/^npm (start|test|run)\b/, 'starts stacks and suites of its own; .ci/run runs them'],
  [/wrangler|func |helm|kubectl|az /, 'deploys to a cloud'],
  [/REVISION|PORT/, 'names a revision and an engine of the reader'],
];
const isElsewhere = (command: string) => elsewhere.find(([pattern]) => pattern.test(command));

let running: Shared;
const scratch = mkdtempSync(path.join(tmpdir(), 'auricle-readme-'));
beforeAll(async () => {
  running = await join();
}, 60_000);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function runShell(command: string): string {
  const local = command
    .replaceAll('/tmp/', `${scratch}/`)
    .replaceAll('http://127.0.0.1:8787', running.stack.url)
    .replaceAll('.auricle/token', running.stack.tokenFile)
    .replaceAll('npx auricle', `node infra/cli/auricle.cjs --edge ${running.stack.url} --token "$TOKEN"`);
  return execFileSync('bash', ['-ec', local], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, TOKEN: running.stack.token },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function matcher(expected: string): RegExp {
  const escaped = expected.trim().replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('…', '[\\s\\S]*?')}$`);
}

describe('C10 npm start prints a command', () => {
  it('that works when it is pasted', async () => {
    const printed = announce(running.stack, await readModels(running.stack));
    expect(printed).toMatch(/reference-en +hears people: no/);
    expect(printed).toContain(running.stack.url);
    expect(printed).toContain(running.stack.tokenFile);
    const command = /^ {2}curl .*\\\n.*$/m.exec(printed)?.[0] ?? '';
    const answer = execFileSync('bash', ['-ec', command], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const clip = clips.find(({ file }) => command.includes(file));
    expect(JSON.parse(answer)).toMatchObject({ text: clip?.text });
  });
});

describe('examples of README and guide', () => {
  it('include the two commands', () => {
    expect(readme).toContain('npm ci && npm start');
    expect(readme).toContain('npm ci && npm test');
  });

  const all = new Map([...examples(guide), ...examples(readme)].map((example) => [example.command, example]));
  const runnable = [...all.values()].filter((example) => !isElsewhere(example.command));
  it('include some that run', () => expect(runnable.length).toBeGreaterThan(2));

  it.each(runnable.map((example) => [example.command, example] as const))(
    '%s',
    (_, { command, output }) => {
      const printed = runShell(command).trim();
      if (output !== undefined) expect(printed).toMatch(matcher(output));
    },
    30_000,
  );
});
