import { expect, it } from 'vitest';
import {
  actOf,
  type BlobMoveRecord,
  followMove,
  MOVE_TRIES_MAX,
  type MoveEvent,
  readAt,
} from '../../../functions/tier/move.ts';
import { seeded } from '../../../shared/registry/seeded.ts';
import { firstSeed, seeds } from '../../seeds.ts';

const DIGEST = 'd'.repeat(64);
const begin: BlobMoveRecord = {
  digest: DIGEST,
  bytes: 10,
  from: 'cold',
  to: 'hot',
  source: 's',
  target: 't0',
  state: 'requested',
  tries: 0,
};

/** Storage, the row that names the blob, and the record; a worker acts on them and may be killed in between. */
function createWorld(random: () => number) {
  const blobs = new Map([['s', DIGEST]]);
  const world = { blobs, row: 's', record: begin as BlobMoveRecord | undefined };
  let names = 0;
  const act = (record: BlobMoveRecord): MoveEvent | undefined => {
    switch (actOf[record.state]) {
      case 'copy':
        if (!blobs.has(record.target)) blobs.set(record.target, random() < 0.2 ? 'wrong' : DIGEST);
        return { type: 'copy-begun' };
      case 'check-copy': {
        const digest = blobs.get(record.target);
        if (digest === DIGEST) return { type: 'copy-whole', bytes: 10, digest };
        blobs.delete(record.target);
        names += 1;
        return { type: 'copy-failed', nextTarget: `t${names}` };
      }
      case 'swap-row':
        world.row = record.target;
        return { type: 'row-swapped' };
      case 'delete-source':
        blobs.delete(record.source);
        return { type: 'source-deleted' };
    }
  };
  const step = () => {
    const record = world.record!;
    const event = act(record);
    // Killed after the act: the record does not know of it.
    if (!event || random() < 0.4) return;
    const followed = followMove(record, event);
    if (!followed) return;
    if ('next' in followed) world.record = followed.next;
    else {
      if (followed.abandoned !== undefined) blobs.delete(followed.abandoned);
      world.record = undefined;
    }
  };
  return { world, step };
}

it('A11 a move killed after any act loses no blob and ends with one copy', () => {
  for (let seed = firstSeed; seed < firstSeed + seeds; seed += 1) {
    const { world, step } = createWorld(seeded(seed));
    for (let turn = 0; world.record && turn < 500; turn += 1) {
      step();
      expect(world.blobs.get(world.row), `seed ${seed}`).toBe(DIGEST);
      if (world.record) expect(world.blobs.get(readAt(world.record)), `seed ${seed}`).toBe(DIGEST);
    }
    expect(world.record, `seed ${seed}`).toBeUndefined();
    expect([...world.blobs.keys()], `seed ${seed}`).toEqual([world.row]);
  }
});

it('never verifies a copy with other bytes or another length', () => {
  const copying: BlobMoveRecord = { ...begin, state: 'copying' };
  expect(followMove(copying, { type: 'copy-whole', bytes: 10, digest: 'e'.repeat(64) })).toBeUndefined();
  expect(followMove(copying, { type: 'copy-whole', bytes: 9, digest: DIGEST })).toBeUndefined();
});

it('ignores events of another state', () => {
  const verified: BlobMoveRecord = { ...begin, state: 'verified' };
  const late: MoveEvent[] = [
    { type: 'copy-begun' },
    { type: 'copy-failed', nextTarget: 't1' },
    { type: 'source-deleted' },
  ];
  for (const event of late) expect(followMove(verified, event)).toBeUndefined();
  expect(followMove(begin, { type: 'row-swapped' })).toBeUndefined();
});

it('gives up after five tries and names the copy to delete', () => {
  let record = begin;
  for (let tried = 1; tried < MOVE_TRIES_MAX; tried += 1) {
    const followed = followMove(record, { type: 'copy-failed', nextTarget: `t${tried}` });
    if (!followed || !('next' in followed)) throw new Error('given up early');
    record = followed.next;
  }
  expect(followMove(record, { type: 'copy-failed', nextTarget: 'x' })).toEqual({ over: 'given-up', abandoned: 't4' });
});
