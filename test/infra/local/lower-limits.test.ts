import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../demo/fleet.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const FILE = 'shared/registry/canary.ts';

/** Prints CANARY_STREAMS as a part with these lowered limits sees it. */
const print = (lowered: object): string =>
  execFileSync(
    process.execPath,
    [
      ...['--import', './infra/local/lower-limits.ts', '--input-type=module'],
      ...['-e', `import { CANARY_STREAMS } from './${FILE}'; console.log(CANARY_STREAMS);`],
    ],
    { cwd: root, encoding: 'utf8', stdio: 'pipe', env: { ...process.env, AURICLE_LIMITS: JSON.stringify(lowered) } },
  ).trim();

describe('lowered limits of a local part', () => {
  it('replaces a constant as its module loads', () => expect(print({ [FILE]: { CANARY_STREAMS: 3 } })).toBe('3'));

  it('stops the part on an unknown constant or file', () => {
    expect(() => print({ [FILE]: { CANARY: 3 } })).toThrow('there is no limit CANARY');
    expect(() => print({ 'shared/canary.ts': { CANARY_STREAMS: 3 } })).toThrow('there is no file shared/canary.ts');
  });

  it.each(Object.entries(LIMITS))('finds the limits of the demonstration in %s', (file, values) => {
    const text = readFileSync(path.join(root, file), 'utf8');
    for (const name of Object.keys(values)) expect(text).toContain(`const ${name} = `);
  });
});
