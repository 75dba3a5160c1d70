import * as ort from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import type { StateInfo, StateRow } from '../../../infra/pool/engine/run/instance-messages.ts';
import { LostState, States } from '../../../infra/pool/engine/run/states.ts';

const info = (given: Partial<StateInfo> = {}): StateInfo => ({
  input: 'IN',
  output: 'OUT',
  datatype: 'FP32',
  dims: [2],
  initial: new Uint8Array(Float32Array.of(7, 8).buffer),
  ...given,
});
const row = (slot: number, given: Partial<StateRow> = {}): StateRow => ({ slot, start: false, end: false, ...given });
const START = { start: true };
const END = { end: true };
const read = (feeds: Record<string, ort.Tensor>) => Array.from((feeds.IN?.data ?? []) as Float32Array);
const written = (values: number[], shape: number[]) => ({
  OUT: new ort.Tensor('float32', Float32Array.from(values), shape),
});

describe('A5: implicit state inside an instance', () => {
  it('starts from the initial state and continues from written ones', () => {
    const states = new States([info()], true);
    const first = states.gather([row(0, START)]);
    expect([first.IN?.dims, read(first)]).toEqual([
      [1, 2],
      [7, 8],
    ]);
    states.keep([row(0, START)], written([1, 2], [1, 2]));
    expect(read(states.gather([row(0)]))).toEqual([1, 2]);
  });

  it('joins the states of a batch by row and splits them again', () => {
    const states = new States([info()], true);
    const rows = [row(3, START), row(1, START)];
    states.gather(rows);
    states.keep(rows, written([1, 2, 3, 4], [2, 2]));
    const both = states.gather([row(1), row(3)]);
    expect([both.IN?.dims, read(both)]).toEqual([
      [2, 2],
      [3, 4, 1, 2],
    ]);
    // A larger batch and then a smaller one in the same memory.
    const more = [row(1), row(3), row(5, START)];
    expect(read(states.gather(more))).toEqual([3, 4, 1, 2, 7, 8]);
    states.keep(more, written([9, 9, 8, 8, 6, 6], [3, 2]));
    expect(read(states.gather([row(5), row(1)]))).toEqual([6, 6, 9, 9]);
  });

  it('a failed run stores nothing, and a failed START starts again', () => {
    const states = new States([info()], true);
    states.gather([row(0, START)]);
    states.keep([row(0, START)], written([1, 2], [1, 2]));
    states.gather([row(0)]);
    expect(read(states.gather([row(0)]))).toEqual([1, 2]);
    expect(() => states.keep([row(0)], written([1, 2, 3, 4], [2, 2]))).toThrow('2 items for a batch of 1');
    expect(read(states.gather([row(0)]))).toEqual([1, 2]);
    states.gather([row(0, START)]);
    expect(read(states.gather([row(0)]))).toEqual([7, 8]);
  });

  it('drops the state of an ended sequence and refuses to continue it', () => {
    const states = new States([info()], true);
    const rows = [row(0, START), row(1, START), row(2, START)];
    states.gather(rows);
    states.keep([row(0, { ...START, ...END }), rows[1]!, rows[2]!], written([1, 1, 2, 2, 3, 3], [3, 2]));
    states.forget([1]);
    for (const slot of [0, 1, 9]) expect(() => states.gather([row(slot)])).toThrow(LostState);
    expect(read(states.gather([row(2)]))).toEqual([3, 3]);
  });

  it('growing states keep their shape; a batch of different shapes is refused', () => {
    const states = new States([info({ dims: [1], initial: new Uint8Array(4) })], true);
    states.gather([row(0, START)]);
    states.keep([row(0, START)], written([1, 2, 3], [1, 3]));
    const grown = states.gather([row(0)]);
    expect([grown.IN?.dims, read(grown)]).toEqual([
      [1, 3],
      [1, 2, 3],
    ]);
    expect(() => states.gather([row(0), row(1, START)])).toThrow('differ in their shapes');
  });

  it('a model without batching keeps its tensors whole', () => {
    const states = new States([info()], false);
    expect(states.gather([row(0, START)]).IN?.dims).toEqual([2]);
    states.keep([row(0, START)], written([5, 6], [2]));
    expect(read(states.gather([row(0)]))).toEqual([5, 6]);
  });

  it('memory of the input is never reused as stored state', () => {
    const states = new States([info()], true);
    const rows = [row(0, START), row(1, START)];
    states.gather(rows);
    const results = written([1, 2, 3, 4], [2, 2]);
    states.keep(rows, results);
    (results.OUT.data as Float32Array).fill(99);
    expect(read(states.gather([row(0)]))).toEqual([1, 2]);
    expect(read(states.gather([row(2, START)]))).toEqual([7, 8]);
  });
});
