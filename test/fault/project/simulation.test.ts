// T3, T4: every project ends, once for each state of its texts, and the audio of each document has every
// segment once, in order and in its last edition, under all faults. As with uploads, the steps of the back
// office run unchanged on a model of its stores; `SEEDS` is the number of histories.
import { describe, expect, it } from 'vitest';
import type { UploadRecord } from '../../../functions/jobs/record.ts';
import { firstSeed, runs } from '../../seeds.ts';
import { findWrong } from './invariant.ts';
import { ProjectSimulation } from './project-simulation.ts';

const COUNT = runs(50, 1_200);

describe('T3 T4: text projects on stores that fail', () => {
  it(
    `none lost, none twice, every segment once in order, in ${COUNT} histories`,
    async () => {
      const ends = new Map<string, number>();
      let edits = 0;
      for (let seed = firstSeed; seed < firstSeed + COUNT; seed += 1) {
        const simulation = new ProjectSimulation(seed);
        await simulation.run(() => {
          const clients = simulation.world.between(1, 4);
          for (let client = 0; client < clients; client += 1) simulation.projectClient(client);
        });
        expect(findWrong(simulation), `seed ${seed}`).toEqual([]);
        for (const rows of simulation.table.partitions.values())
          for (const [key, { value }] of rows) {
            const { state } = value as unknown as UploadRecord;
            if (key.startsWith('p!')) ends.set(state.status, (ends.get(state.status) ?? 0) + 1);
          }
        edits += simulation.made.reduce((sum, made) => sum + made.edits.length, 0);
      }
      // The histories are rough enough to see every end, and not so rough that nothing gets done.
      if (COUNT < 50) return;
      const all = [...ends.values()].reduce((sum, one) => sum + one, 0);
      expect((ends.get('done') ?? 0) / all).toBeGreaterThan(0.4);
      for (const end of ['refused', 'cancelled']) expect(ends.get(end), end).toBeGreaterThan(0);
      expect(edits).toBeGreaterThan(COUNT / 2);
    },
    10_000 + COUNT * 200,
  );
});
