// Output and remains of `--engine triton` where Triton cannot be installed. The real one: `npm run
// test:triton`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ROOT } from '../../../infra/local/root.ts';
import { installTriton } from '../../../infra/pool/triton/install.ts';
import { folderForTest } from './folder.ts';
import { isRunning } from './process.ts';

const PATIENCE = { timeout: 15_000, interval: 50 };

/** Runs `npm start -- --engine triton` with no programs but those in `programs`. */
function start(programs: string) {
  const state = folderForTest();
  const given = ['infra/local/main.ts', '--engine', 'triton', '--state', state, '--port', '0'];
  const child = spawn(process.execPath, given, {
    cwd: ROOT,
    env: { PATH: programs, AURICLE_TRITON: folderForTest() },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text) => {
      said += text;
    });
  const ended = once(child, 'close');
  return { child, state, said: () => said, ended };
}

describe.runIf(process.platform === 'linux' && process.arch === 'x64')('npm start -- --engine triton', () => {
  it('reports a missing Python in one line and leaves no folder', async () => {
    const { state, said, ended } = start(folderForTest());
    expect(await ended).toEqual([1, null]);
    expect(said()).toMatch(/^--engine triton: no Python that will do: python3 is not there; [^\n]+\n$/);
    expect(existsSync(path.join(state, 'stack.json'))).toBe(false);
  });

  it('removes remains of killed and failed installations', async () => {
    const folder = folderForTest();
    mkdirSync(path.join(folder, 'server.making-999999999'));
    const python = path.join(folderForTest(), 'python3');
    const found = { executable: python, version: '3.11', bits: 64, library: '/libpython', pip: true };
    // Answers like a suitable Python, begins to download, and fails.
    const download = 'while [ "$1" != -d ]; do shift; done; mkdir -p "$2"; echo ERROR: no index >&2; exit 1';
    writeFileSync(python, `#!/bin/sh\nif [ "$1" = -c ]; then echo '${JSON.stringify(found)}'; exit; fi\n${download}\n`);
    chmodSync(python, 0o755);
    await expect(installTriton({ folder, pythons: [python] })).rejects.toThrow('ERROR: no index');
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each(['SIGINT', 'SIGKILL'] as const)(
    'leaves nothing running when %s ends it while it installs',
    async (signal) => {
      const programs = folderForTest();
      // A Python that never answers.
      const [python, pid] = [path.join(programs, 'python3'), path.join(programs, 'pid')];
      writeFileSync(python, `#!/bin/sh\necho $$ > ${pid}.new\n/bin/mv ${pid}.new ${pid}\nexec /bin/sleep 1000\n`);
      chmodSync(python, 0o755);
      const { child, ended } = start(programs);
      await expect.poll(() => existsSync(pid), PATIENCE).toBe(true);
      const asked = Number(readFileSync(pid, 'utf8'));
      expect(isRunning(asked)).toBe(true);
      child.kill(signal);
      expect(await ended).toEqual(signal === 'SIGINT' ? [0, null] : [null, 'SIGKILL']);
      await expect.poll(() => isRunning(asked), PATIENCE).toBe(false);
    },
  );
});
