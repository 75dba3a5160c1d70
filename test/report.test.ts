import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { renderReport } from './bench/report.ts';

it('test/bench/RESULTS.md equals what the stored results render', () => {
  const stored = readFileSync(path.join(import.meta.dirname, 'bench/RESULTS.md'), 'utf8');
  expect(stored).toBe(renderReport());
});
