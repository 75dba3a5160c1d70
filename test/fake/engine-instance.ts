import type { Clock } from '../../infra/pool/engine/clock.ts';
import type { Instance } from '../../infra/pool/engine/run/instance.ts';
import type { StateRow } from '../../infra/pool/engine/run/instance-messages.ts';
import { fault } from '../../shared/kserve/fault.ts';
import { fp32Tensor, readFp32 } from '../../shared/kserve/tensor.ts';
import { no, ok } from '../../shared/result.ts';
import { settle } from './clock.ts';

/** A clock that the test advances. */
export class FakeEngineClock implements Clock {
  #now = 0;
  #alarms = new Set<{ at: number; act: () => void }>();
  now() {
    return this.#now;
  }
  alarm(at: number, act: () => void) {
    const entry = { at, act };
    this.#alarms.add(entry);
    return () => void this.#alarms.delete(entry);
  }
  advance(to: number) {
    this.#now = to;
    for (const entry of [...this.#alarms]) {
      if (entry.at <= to && this.#alarms.delete(entry)) entry.act();
    }
  }
  get armed() {
    return this.#alarms.size;
  }
}

/** An instance whose runs the test finishes; a value of 13 fails the whole batch, 404 means a lost state. */
export class FakeInstance implements Instance {
  readonly info = { inputs: [], outputs: [] };
  readonly heapBytes = 0;
  readonly batches: number[][] = [];
  readonly rows: (readonly StateRow[])[] = [];
  readonly forgotten: number[] = [];
  readonly #finishes: (() => void)[] = [];
  closed = false;
  run: Instance['run'] = (inputs, _outputs, rows) => {
    const values = readFp32(inputs[0]!);
    const batch = values.ok ? [...values.value] : [];
    this.batches.push(batch);
    this.rows.push(rows);
    return new Promise((resolve) => {
      this.#finishes.push(() => {
        if (batch.includes(13)) resolve(fault('unlucky'));
        else if (batch.includes(404)) resolve(no({ reason: 'gone', lost: true }));
        else resolve(ok({ tensors: [fp32Tensor('Y', Float32Array.from(batch), [batch.length, 1])], inferNs: 1 }));
      });
    });
  };
  forget(slots: readonly number[]) {
    this.forgotten.push(...slots);
  }
  async finish() {
    this.#finishes.shift()?.();
    await settle();
  }
  async close() {
    this.closed = true;
  }
}
