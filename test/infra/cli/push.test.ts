// `auricle model push`, after its files were sent: the wait for the functions that hash them.
import { expect, it } from 'vitest';
import { untilStored } from '../../../infra/cli/models/push.ts';
import type { FileList } from '../../../shared/registry/model-files.ts';

const MINUTE = 60_000;

type State = 'missing' | 'hashing' | 'stored';

const listOf = (...states: State[]): { value: FileList } => ({
  value: {
    revision: `sha256:${'a'.repeat(64)}`,
    complete: states.every((state) => state === 'stored'),
    files: states.map((state, at) => ({ name: `m/${at}`, digest: String(at).repeat(64), bytes: 10, state })),
  },
});

/** Waits with a look each minute; the last list is repeated. */
async function wait(...lists: { value: FileList }[]) {
  let now = 0;
  const steps: number[] = [];
  const lines: string[] = [];
  const answer = await untilStored(async () => (lists.length > 1 ? lists.shift() : lists[0]) ?? listOf(), {
    now: () => now,
    pause: async (step) => {
      now += MINUTE;
      steps.push(step);
    },
    print: (line) => void lines.push(line),
  });
  return { answer, steps, lines };
}

it('C7 backs off between looks and prints the files left', async () => {
  const open = listOf('hashing', 'hashing');
  const { answer, steps, lines } = await wait(open, open, open, open, open, listOf('stored', 'hashing'), listOf());
  expect(answer).toBeUndefined();
  expect(steps).toEqual([1, 2, 3, 4, 4, 4]);
  expect(lines).toEqual(['the store hashes 2 of 2 files (20 bytes)', 'the store hashes 1 of 2 files (10 bytes)']);
});

it('C7 gives up after five minutes without a finished file, naming them', async () => {
  const { answer } = await wait(listOf('stored', 'hashing'));
  expect(answer).toMatchObject({
    exit: 1,
    text: expect.stringContaining('1 of 2 files (10 bytes) and has finished none'),
  });
});

it('C7 ends at once when the store discards a file', async () => {
  const { answer, steps } = await wait(listOf('stored', 'missing'));
  expect([answer?.exit, steps]).toEqual([1, []]);
});
