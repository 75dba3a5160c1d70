import { limits } from '../../../../shared/limits.ts';
import { ok } from '../../../../shared/result.ts';
import { type Made, problem } from '../problem.ts';
import { type Effect, type Opcode, opcodes } from './pickle-opcodes.ts';

const storages = 'Float Double Half BFloat16 Char Short Int Long Byte Bool'
  .split(' ')
  .map((kind) => `torch.${kind}Storage`);
const torchTypes = 'float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool'
  .split(' ')
  .map((kind) => `torch.${kind}`);

/**
 * What a pickled checkpoint may import: what rebuilds tensors, and containers. Unpickling calls what it imports, so a name
 * that is not here may be anything. Not a list of what is known to be bad: that list is never long enough.
 */
const allowedGlobals: ReadonlySet<string> = new Set([
  'collections.OrderedDict',
  'torch._utils._rebuild_tensor',
  'torch._utils._rebuild_tensor_v2',
  'torch._utils._rebuild_parameter',
  'torch.Size',
  'torch.Tensor',
  'torch.nn.parameter.Parameter',
  'torch.storage.TypedStorage',
  'torch.storage.UntypedStorage',
  ...storages,
  ...torchTypes,
  'numpy.dtype',
  'numpy.ndarray',
  'numpy.core.multiarray._reconstruct',
  'numpy.core.multiarray.scalar',
  'numpy._core.multiarray._reconstruct',
  'numpy._core.multiarray.scalar',
]);

interface Step {
  readonly opcode: Opcode;
  /** Argument as text, where it is one. */
  readonly text: string;
  readonly next: number;
}

/** A value of the machine: a text that is known, or something else. `mark` ends a group. */
type Item = { readonly text: string } | 'mark' | 'unknown';

/**
 * Follows one pickle without building anything. Gives where it ends. Every opcode must be known, every import must be by a
 * name that can be read here and stands on the list; what cannot be followed is refused.
 */
export function scanPickle(bytes: Uint8Array, name: string, from = 0): Made<number> {
  const machine = new Machine();
  for (let at = from; at < bytes.length; ) {
    const step = readStep(bytes, at);
    if (!step) return problem('unsafe', `${name}: no pickle opcode this tool knows, at ${at}`);
    const imported = machine.run(step);
    if (imported !== undefined && !allowedGlobals.has(imported)) {
      return problem('unsafe', `${name} imports ${JSON.stringify(imported)}, which no checkpoint needs`);
    }
    if (machine.broken) return problem('unsafe', `${name}: ${machine.broken}, at ${at}`);
    at = step.next;
    if (step.opcode.effect === 'stop') return ok(at);
  }
  return problem('unsafe', `${name}: the pickle does not end`);
}

function readStep(bytes: Uint8Array, at: number): Step | undefined {
  const opcode = opcodes.get(bytes[at] ?? -1);
  if (!opcode) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = at + 1;
  const inside = (end: number) => (end <= bytes.length ? end : undefined);
  const line = (from: number) => {
    const end = bytes.indexOf(10, from);
    return end < 0 ? undefined : end;
  };
  const step = (from: number, end: number | undefined, next = end): Step | undefined =>
    end === undefined || next === undefined
      ? undefined
      : { opcode, text: Buffer.from(bytes.subarray(from, end)).toString('utf8'), next };
  const counted = (width: 1 | 4 | 8): Step | undefined => {
    if (inside(start + width) === undefined) return undefined;
    const length =
      width === 1
        ? view.getUint8(start)
        : width === 4
          ? view.getUint32(start, true)
          : Number(view.getBigUint64(start, true));
    return step(start + width, inside(start + width + length));
  };
  switch (opcode.argument) {
    case 'none':
      return step(start, start);
    case 'byte':
      return withNumber(step(start, inside(start + 1)), bytes[start]);
    case 'two':
      return step(start, inside(start + 2));
    case 'four':
      return withNumber(step(start, inside(start + 4)), start + 4 <= bytes.length ? view.getUint32(start, true) : 0);
    case 'eight':
      return step(start, inside(start + 8));
    case 'line': {
      const end = line(start);
      return step(start, end, end === undefined ? undefined : end + 1);
    }
    case 'two lines': {
      const first = line(start);
      const second = first === undefined ? undefined : line(first + 1);
      const read = step(start, second, second === undefined ? undefined : second + 1);
      return read && { ...read, text: read.text.replace('\n', '.') };
    }
    case 'counted 1':
      return counted(1);
    case 'counted 4':
      return counted(4);
    case 'counted 8':
      return counted(8);
  }
}

const withNumber = (step: Step | undefined, number: number | undefined): Step | undefined =>
  step && { ...step, text: String(number) };

class Machine {
  broken: string | undefined;
  readonly #stack: Item[] = [];
  readonly #memo = new Map<string, Item>();

  /** Does one step; gives the name that it imports. */
  run({ opcode, text }: Step): string | undefined {
    const { effect } = opcode;
    if (effect === 'global') return this.#global(text);
    if (effect === 'global with mark') {
      this.#toMark(0, 0);
      return this.#global(text);
    }
    if (effect === 'global from stack') {
      const [name, module] = [this.#stack.pop(), this.#stack.pop()];
      if (typeof name !== 'object' || typeof module !== 'object') {
        this.broken = 'imports a name that is put together while it is read';
        return undefined;
      }
      return this.#global(`${module.text}.${name.text}`);
    }
    this.#move(effect, opcode, text);
    return undefined;
  }

  #global(name: string): string {
    this.#stack.push('unknown');
    return name;
  }

  #move(effect: Effect, opcode: Opcode, text: string): void {
    if (typeof effect === 'object') {
      if ('toMark' in effect) this.#toMark(effect.toMark, effect.leave);
      else this.#replace(effect.take, effect.leave);
    } else if (effect === 'text') this.#stack.push({ text });
    else if (effect === 'mark') this.#stack.push('mark');
    else if (effect === 'double') this.#stack.push(this.#top('doubles what is not there'));
    else if (effect === 'fetch')
      this.#stack.push(this.#memo.get(this.#key(text)) ?? this.#break('fetches what it never kept'));
    else if (effect === 'keep') {
      const top = this.#top('keeps what is not there');
      this.#memo.set(opcode.argument === 'none' ? String(this.#memo.size) : this.#key(text), top);
      if (this.#memo.size > limits.modelPickleMemo.value) this.#break('remembers too much');
    }
  }

  #replace(take: number, leave: number): void {
    for (let n = 0; n < take; n++) this.#pop();
    if (leave > 0) this.#stack.push('unknown');
  }

  #top(missing: string): Item {
    const last = this.#stack.at(-1);
    return last === undefined || last === 'mark' ? this.#break(missing) : last;
  }

  /**
   * Numbers of the memo are texts in some opcodes. Python takes `p1_0`, `p+10` and `p 10` for 10: whoever reads another
   * number follows another pickle, so only what everybody reads alike is read.
   */
  #key(text: string): string {
    if (!/^(0|[1-9]\d{0,9})$/.test(text)) this.#break(`numbers its memo with ${JSON.stringify(text.slice(0, 40))}`);
    return text;
  }

  #pop(): void {
    const item = this.#stack.pop();
    if (item === undefined || item === 'mark') this.#break('takes what is not there');
  }

  #toMark(below: number, leave: number): void {
    const mark = this.#stack.lastIndexOf('mark');
    if (mark < 0) {
      this.#break('ends a group that was not begun');
      return;
    }
    this.#stack.length = mark;
    this.#replace(below, leave);
  }

  #break(why: string): Item {
    this.broken ??= why;
    return 'unknown';
  }
}
