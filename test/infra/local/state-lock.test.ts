import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { StartProblem } from '../../../infra/local/start-problem.ts';
import { lockState } from '../../../infra/local/state-lock.ts';
import { folderForTest } from './folder.ts';
import { isRunning } from './process.ts';

const taken = (lock: ReturnType<typeof lockState>) => 'heldBy' in lock;

describe('one stack per state folder', () => {
  it('reports its holder, and is free afterwards', () => {
    const state = folderForTest();
    const first = lockState(state, 'http://127.0.0.1:1');
    const second = lockState(state, 'http://127.0.0.1:2');
    expect(second).toMatchObject({ heldBy: { pid: process.pid, url: 'http://127.0.0.1:1' } });
    if ('release' in first) first.release();
    expect(taken(lockState(state, 'http://127.0.0.1:2'))).toBe(false);
  });

  it('makes the folder with its parents, or reports the failure in one line', () => {
    const state = folderForTest();
    const lock = lockState(path.join(state, 'a', 'b'), 'x');
    expect(taken(lock)).toBe(false);
    const file = path.join(state, 'file');
    writeFileSync(file, '');
    for (const wrong of [file, path.join(file, 'below')]) {
      expect(() => lockState(wrong, 'x')).toThrow(
        new StartProblem(`cannot make the folder ${file} (EEXIST): name another one with --state`),
      );
    }
  });

  it.runIf(process.platform === 'linux')('comes back from where no folder can ever be', () => {
    expect(() => lockState('/proc/auricle/below', 'x')).toThrow(StartProblem);
  });

  it('is not held by a dead process, a reused number or half a file', async () => {
    const state = folderForTest();
    const child = spawn(process.execPath, ['-e', '']);
    await once(child, 'exit');
    const file = path.join(state, 'stack.json');
    for (const left of [
      JSON.stringify({ pid: child.pid, mark: '', url: 'x', groups: [] }),
      JSON.stringify({ pid: process.pid, mark: 'another boot', url: 'x', groups: [] }),
      '{"pid":',
    ]) {
      writeFileSync(file, left);
      const lock = lockState(state, 'y');
      expect(taken(lock)).toBe(false);
      if ('release' in lock) lock.release();
      expect(existsSync(file)).toBe(false);
    }
  });

  it.skipIf(process.platform === 'win32')('ends the group that a dead stack left behind', async () => {
    const state = folderForTest();
    // A leader that dies at once and leaves a child in its group, as a killed edge leaves its runtime.
    const script = `const c = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' }); c.unref(); process.stdout.write(String(c.pid));`;
    const leader = spawn(process.execPath, ['-e', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
    const [[left]] = await Promise.all([once(leader.stdout, 'data'), once(leader, 'exit')]);
    const orphan = Number(String(left));
    process.kill(orphan, 0);
    const dead = { pid: leader.pid, mark: '', url: 'x', groups: [leader.pid, process.pid] };
    writeFileSync(path.join(state, 'stack.json'), JSON.stringify(dead));
    lockState(state, 'y');
    await expect.poll(() => isRunning(orphan)).toBe(false);
  });
});
