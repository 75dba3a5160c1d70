import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { choosePorts } from '../../../infra/local/ports.ts';

const module = path.join(import.meta.dirname, '..', '..', '..', 'infra', 'local', 'ports.ts');

/** Ports that another process chooses from the same starting point, while this one lives. */
function chosenElsewhere(start: number): number[] {
  const code = `import(${JSON.stringify(module)}).then(async ({ choosePorts }) => console.log(JSON.stringify(await choosePorts(3, () => ${start}))))`;
  return JSON.parse(execFileSync(process.execPath, ['-e', code], { encoding: 'utf8' }));
}

describe('ports are chosen before anybody listens on them', () => {
  it('never twice in a process, whatever chance says', async () => {
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
});
