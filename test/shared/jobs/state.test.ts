import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  follow,
  isOver,
  newState,
  next,
  type UploadEvent,
  type UploadState,
  uploadStatuses,
  wantedJobs,
} from '../../../shared/jobs/state.ts';

const arrived: UploadEvent = { type: 'arrived', bytes: 5, etag: '"1"' };
const planned = (pieces: number): UploadEvent => ({ type: 'planned', run: 1, pieces, seconds: 1_200 });
const recognised = (piece: number): UploadEvent => ({ type: 'recognised', run: 1, piece });
const merged: UploadEvent = { type: 'merged', run: 1, seconds: 1_200 };
const refused: UploadEvent = { type: 'refused', run: 1, refusal: { reason: 'audio_empty' } };
const stateAfter = (...events: UploadEvent[]): UploadState => follow(newState, events) ?? newState;
const admitted = stateAfter(arrived, { type: 'admitted' });

describe('T4: the states of an upload', () => {
  it.each([
    ['granted', []],
    ['uploaded', [arrived]],
    ['admitted', [arrived, { type: 'admitted' }]],
    ['planned', [arrived, { type: 'admitted' }, planned(2)]],
    ['working', [arrived, { type: 'admitted' }, planned(2), recognised(1)]],
    ['merging', [arrived, { type: 'admitted' }, planned(2), recognised(1), recognised(0)]],
    ['merging', [arrived, { type: 'admitted' }, recognised(1), recognised(0), planned(2)]],
    ['done', [arrived, { type: 'admitted' }, planned(2), recognised(1), recognised(0), merged]],
    ['done', [arrived, { type: 'admitted' }, merged]],
    ['refused', [arrived, refused]],
    ['cancelled', [{ type: 'cancelled' }]],
    ['expired', [{ type: 'expired' }]],
    ['uploaded', [arrived, { type: 'expired' }]],
    ['granted', [planned(2), recognised(0), merged, { type: 'rerun' }]],
  ] as [string, UploadEvent[]][])('%s follows from what happened', (status, events) => {
    expect(stateAfter(...events).status).toBe(status);
  });

  it('an earlier event has no effect', () => {
    const working = stateAfter(arrived, { type: 'admitted' }, planned(3), recognised(1));
    expect(next(working, recognised(1))).toBeUndefined();
    expect(next(working, arrived)).toBeUndefined();
    expect(next(working, planned(3))).toBeUndefined();
    expect(next(working, recognised(3))).toBeUndefined();
  });

  it('an outcome is final', () => {
    const done = stateAfter(arrived, { type: 'admitted' }, merged);
    for (const event of [refused, { type: 'cancelled' }, { type: 'expired' }, merged, planned(2)] as UploadEvent[]) {
      expect(next(done, event)).toBeUndefined();
    }
  });

  it('a new run starts over, and ignores events of the old one', () => {
    const again = next(stateAfter(arrived, { type: 'admitted' }, planned(2), refused), { type: 'rerun' });
    expect(again).toMatchObject({ status: 'admitted', run: 2, pieces: 0, done: [], etag: '"1"' });
    expect(again).not.toHaveProperty('refusal');
    expect(next(again as UploadState, merged)).toBeUndefined();
    expect(next(stateAfter({ type: 'cancelled' }), { type: 'rerun' })).toBeUndefined();
  });

  it('work is wanted only where there is some, and each piece once', () => {
    expect(wantedJobs(newState)).toEqual([]);
    expect(wantedJobs(admitted)).toEqual([{ kind: 'plan' }]);
    expect(wantedJobs(stateAfter(arrived, { type: 'admitted' }, planned(3), recognised(1)))).toEqual([
      { kind: 'work', piece: 0 },
      { kind: 'work', piece: 2 },
    ]);
    expect(wantedJobs(stateAfter(arrived, { type: 'admitted' }, planned(1), recognised(0)))).toEqual([
      { kind: 'merge' },
    ]);
  });

  const anyEvent = fc.oneof(
    fc.constant(arrived),
    fc.constantFrom<UploadEvent>({ type: 'admitted' }, { type: 'cancelled' }, { type: 'expired' }, merged, refused),
    fc.integer({ min: 1, max: 4 }).map(planned),
    fc.integer({ min: 0, max: 5 }).map(recognised),
  );

  it('states only move forward and end once, under random events', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
        let state = newState;
        for (const event of events) {
          const to = next(state, event);
          if (!to) continue;
          expect(uploadStatuses.indexOf(to.status)).toBeGreaterThanOrEqual(uploadStatuses.indexOf(state.status));
          expect(isOver(state.status)).toBe(false);
          expect(to.seq).toBe(state.seq + 1);
          expect(to.done.every((piece) => to.pieces === 0 || piece < to.pieces)).toBe(true);
          expect(next(to, event)).toBeUndefined();
          state = to;
        }
      }),
    );
  });

  it('the order of results and plan does not matter', () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray([planned(3), recognised(0), recognised(1), recognised(2)], { minLength: 4 }),
        (events) => {
          expect(follow(admitted, events)?.status).toBe('merging');
        },
      ),
    );
  });
});
