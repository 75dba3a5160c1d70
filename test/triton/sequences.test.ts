import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { folder } from './install.ts';

const run = promisify(execFile);

it('A5: states of a Python model: begin, end, capacity, idleness, copies', async () => {
  const { environment } = await installTriton({ folder });
  const models = path.resolve(import.meta.dirname, '../../infra/pool/triton/models');
  const script = path.join(import.meta.dirname, 'sequences.py');
  const { stdout } = await run(path.join(environment, 'bin/python'), [script, models], {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
  });
  expect(stdout.trim().split('\n')).toHaveLength(5);
});
