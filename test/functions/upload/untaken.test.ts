// Queues that nobody reads: what is said of them, and how uploads end there.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Line, Office } from '../../../functions/upload/office.ts';
import { onStalled } from '../../../functions/upload/on-timer.ts';
import { MINUTE } from '../../../functions/upload/record.ts';
import { Quiet } from './quiet.ts';

let quiet: Quiet;
let office: Office;
let lines: Line[];
beforeEach(() => {
  quiet = new Quiet();
  lines = [];
  office = { ...quiet.instant(), log: (line) => lines.push(line) };
});

describe('C11: depth and age of the queues', () => {
  it('are numbers of one line for each zone, that a monitor reads without knowing our words', async () => {
    const depth = { waiting: 3, taken: 2, dead: 1 };
    office = { ...office, jobs: { ...office.jobs, depth: async () => depth } };
    await quiet.uploaded();
    quiet.wait(5 * MINUTE);
    await onStalled(office);
    expect(lines.filter(({ what }) => what === 'queue')).toEqual([
      { what: 'queue', zone: 'eu', ...depth, oldestSeconds: 300 },
      { what: 'queue', zone: 'us', ...depth, oldestSeconds: 0 },
    ]);
  });
});
