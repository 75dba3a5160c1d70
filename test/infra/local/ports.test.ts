import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { choosePorts } from '../../../infra/local/ports.ts';
import { folderForTest } from './folder.ts';

const module = path.join(import.meta.dirname, '..', '..', '..', 'infra', 'local', 'ports.ts');

/** Ports that another process chooses from the same starting point, while this one lives. */
function chosenElsewhere(start: number): number[] {
  return JSON.parse(choosing(`console.log(JSON.stringify(await choosePorts(3, () => ${start})))`).stdout);
}

/** Runs code in another process that has `choosePorts`. */
function choosing(code: string, env = process.env) {
  const whole = `import(${JSON.stringify(module)}).then(async ({ choosePorts }) => { ${code} })`;
  return spawnSync(process.execPath, ['-e', whole], { encoding: 'utf8', env });
}

describe('ports are chosen before a server listens on them', () => {
  it('never chooses a port twice in a process', async () => {
    const start = Math.random();
    const [first, second] = [await choosePorts(3, () => start), await choosePorts(3, () => start)];
    expect(new Set([...first, ...second]).size).toBe(6);
  });

  it('never by two processes', async () => {
    const start = Math.random();
    const ours = await choosePorts(3, () => start);
    expect(chosenElsewhere(start).filter((port) => ours.includes(port))).toEqual([]);
  });

  it('again once the process that chose them has ended', () => {
    const start = Math.random();
    expect(chosenElsewhere(start)).toEqual(chosenElsewhere(start));
  });

  it('T1 removes claims of a killed process when the next one chooses', () => {
    const folder = folderForTest();
    const env = { ...process.env, TMPDIR: folder };
    const claims = () => readdirSync(path.join(folder, 'auricle-ports'));
    choosing("await choosePorts(3); process.kill(process.pid, 'SIGKILL')", env);
    expect(claims()).toHaveLength(3);
    choosing('await choosePorts(1, () => 0)', env);
    expect(claims()).toEqual([]);
  });
});
