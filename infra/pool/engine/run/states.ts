import type * as ort from 'onnxruntime-node';
import type { StateInfo, StateRow } from './instance-messages.ts';
import { fromOrt, toOrt } from './ort-tensor.ts';

/** State of one sequence: for each state of the model its bytes and, without the batch, its shape. */
type Kept = { readonly bytes: Uint8Array; readonly shape: readonly number[] }[];

/** A request continues a sequence whose state was lost with a dead thread. */
export class LostState extends Error {}

/**
 * Implicit states of the sequences on this instance. They stay in the thread that runs the network; elsewhere
 * a megabyte would cross threads twice for every tenth of a second of speech.
 */
export class States {
  readonly #infos: readonly StateInfo[];
  readonly #batched: boolean;
  readonly #initial: Kept;
  /** State by slot; undefined before a sequence's first request has succeeded. */
  readonly #kept = new Map<number, Kept | undefined>();
  /** Batch buffer for each state, in which rows lie side by side; as large as the largest batch. */
  readonly #joined: Uint8Array[];

  constructor(infos: readonly StateInfo[], batched: boolean) {
    this.#infos = infos;
    this.#batched = batched;
    this.#initial = infos.map(({ initial, dims }) => ({ bytes: initial, shape: dims }));
    this.#joined = infos.map(() => new Uint8Array(0));
  }

  /** Names of the state outputs. */
  get outputs(): string[] {
    return this.#infos.map(({ output }) => output);
  }

  /** Returns the state inputs of these rows, in order. Valid until the next call. */
  gather(rows: readonly StateRow[]): Record<string, ort.Tensor> {
    if (this.#infos.length === 0) return {};
    for (const { slot, start } of rows) {
      if (start) this.#kept.set(slot, undefined);
      else if (!this.#kept.has(slot)) throw new LostState('the state of the sequence is lost');
    }
    return Object.fromEntries(this.#infos.map((info, index) => [info.input, this.#gatherOne(info, index, rows)]));
  }

  #gatherOne({ input, datatype }: StateInfo, index: number, rows: readonly StateRow[]): ort.Tensor {
    const parts = rows.map(({ slot }) => (this.#kept.get(slot) ?? this.#initial)[index]!);
    const [{ bytes, shape }] = parts as [Kept[number]];
    if (parts.length === 1)
      return toOrt({ name: input, datatype, shape: this.#batched ? [1, ...shape] : shape, bytes });
    // The caller then runs the rows one by one.
    if (parts.some((part) => part.shape.join() !== shape.join())) throw new Error('the states differ in their shapes');
    const all = bytes.byteLength * parts.length;
    if (this.#joined[index]!.byteLength < all) this.#joined[index] = new Uint8Array(all);
    const joined = this.#joined[index]!;
    for (const [row, part] of parts.entries()) joined.set(part.bytes, row * bytes.byteLength);
    return toOrt({ name: input, datatype, shape: [parts.length, ...shape], bytes: joined.subarray(0, all) });
  }

  /** Stores the states after a successful run, so that a failed batch can run again. */
  keep(rows: readonly StateRow[], results: Readonly<Record<string, ort.OnnxValue>>): void {
    if (this.#infos.length === 0) return;
    const written = this.#infos.map(({ output }) => fromOrt(output, results[output] as ort.Tensor));
    for (const { name, shape } of written) {
      if (this.#batched && shape[0] !== rows.length)
        throw new Error(`state '${name}' has ${shape[0]} items for a batch of ${rows.length}`);
    }
    for (const [row, { slot, end }] of rows.entries()) {
      if (end) this.#kept.delete(slot);
      else this.#kept.set(slot, this.#rowOf(written, row, rows.length, this.#kept.get(slot)));
    }
  }

  #rowOf(
    written: readonly { bytes: Uint8Array; shape: readonly number[] }[],
    row: number,
    rows: number,
    old?: Kept,
  ): Kept {
    return written.map(({ bytes, shape }, index) => {
      const size = bytes.byteLength / rows;
      const own = bytes.subarray(row * size, (row + 1) * size);
      // Reuses the former memory: a fresh megabyte for each step would keep the collector busy.
      const buffer = old?.[index]?.bytes;
      const target = buffer?.byteLength === size ? buffer : new Uint8Array(size);
      target.set(own);
      return { bytes: target, shape: this.#batched ? shape.slice(1) : shape };
    });
  }

  forget(slots: readonly number[]): void {
    for (const slot of slots) this.#kept.delete(slot);
  }
}
