import { ok } from '../../../../shared/result.ts';
import { type BuildResult, problem } from '../problem.ts';
import { type Effect, type Opcode, opcodes } from './pickle-opcodes.ts';

/**
 * Opcodes of a pickle: four times a hundred for each tensor of the largest networks, followed in a second or
 * two.
 */
const PICKLE_STEPS_MAX = 4_000_000;
/** Values that a pickle remembers: ten for each tensor of the largest networks. */
const PICKLE_MEMO_MAX = 1_000_000;

const storages = 'Float Double Half BFloat16 Char Short Int Long Byte Bool'
  .split(' ')
  .map((kind) => `torch.${kind}Storage`);
const torchTypes = 'float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool'
  .split(' ')
  .map((kind) => `torch.${kind}`);

/**
 * Imports that a pickled checkpoint may make: rebuilders of tensors, and containers. Unpickling calls what it
 * imports, so any other name may be anything. An allow-list, since no deny-list is ever complete.
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
  /** Argument as text, if it is one. Few opcodes read it, so it is decoded on demand. */
  readonly text: () => string;
  readonly next: number;
}

/** A value of the machine: a known text, or another one. `mark` ends a group. */
type Item = { readonly text: string } | 'mark' | 'unknown';

/**
 * Interprets one pickle without building objects, and returns its end. Every opcode must be known, every
 * import must be by a readable name on the list; anything else is refused.
 */
export function scanPickle(bytes: Uint8Array, name: string): BuildResult<number> {
  const machine = new Machine();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const most = PICKLE_STEPS_MAX;
  for (let at = 0, steps = 0; at < bytes.length; steps++) {
    if (steps >= most) return problem('bound', `${name}: the pickle has more than ${most} steps`);
    const step = readStep(bytes, view, at);
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

/**
 * Longest relevant text, bytes: names on the list are shorter, and of a longer one the beginning is shown.
 */
const LONGEST_TEXT = 256;
const SHOWN_TEXT = 40;

function textAt(bytes: Uint8Array, from: number, end: number): string {
  const decode = (to: number) => Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('utf8');
  return end - from <= LONGEST_TEXT ? decode(end) : `${decode(from + SHOWN_TEXT)}… (${end - from} bytes)`;
}

const noText = (): string => '';

function readStep(bytes: Uint8Array, view: DataView, at: number): Step | undefined {
  const opcode = opcodes.get(bytes[at] ?? -1);
  if (!opcode) return undefined;
  const start = at + 1;
  const fixed = (width: number, text = noText): Step | undefined =>
    start + width <= bytes.length ? { opcode, text, next: start + width } : undefined;
  switch (opcode.argument) {
    case 'none':
      return fixed(0);
    case 'byte':
      return fixed(1, () => String(view.getUint8(start)));
    case 'two':
      return fixed(2);
    case 'four':
      return fixed(4, () => String(view.getUint32(start, true)));
    case 'eight':
      return fixed(8);
    case 'line': {
      const end = bytes.indexOf(10, start);
      return end < 0 ? undefined : { opcode, text: () => textAt(bytes, start, end), next: end + 1 };
    }
    case 'two lines': {
      const first = bytes.indexOf(10, start);
      const second = first < 0 ? first : bytes.indexOf(10, first + 1);
      const text = () => `${textAt(bytes, start, first)}.${textAt(bytes, first + 1, second)}`;
      return second < 0 ? undefined : { opcode, text, next: second + 1 };
    }
    default:
      return readCounted(bytes, view, opcode, start);
  }
}

const widths = { 'counted 1': 1, 'counted 4': 4, 'counted 8': 8 } as const;

function readCounted(bytes: Uint8Array, view: DataView, opcode: Opcode, start: number): Step | undefined {
  const width = widths[opcode.argument as keyof typeof widths];
  const from = start + width;
  if (from > bytes.length) return undefined;
  const lengths = {
    1: () => view.getUint8(start),
    4: () => view.getUint32(start, true),
    8: () => Number(view.getBigUint64(start, true)),
  };
  const next = from + lengths[width]();
  return next <= bytes.length ? { opcode, text: () => textAt(bytes, from, next), next } : undefined;
}

class Machine {
  broken: string | undefined;
  readonly #stack: Item[] = [];
  readonly #memo = new Map<string, Item>();

  /** Runs one step; returns the name that it imports. */
  run({ opcode, text }: Step): string | undefined {
    const { effect } = opcode;
    if (effect === 'global') return this.#global(text());
    if (effect === 'global with mark') {
      this.#toMark(0, 0);
      return this.#global(text());
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

  #move(effect: Effect, opcode: Opcode, text: Step['text']): void {
    if (typeof effect === 'object') {
      if ('toMark' in effect) this.#toMark(effect.toMark, effect.leave);
      else this.#replace(effect.take, effect.leave);
    } else if (effect === 'text') this.#stack.push({ text: text() });
    else if (effect === 'mark') this.#stack.push('mark');
    else if (effect === 'double') this.#stack.push(this.#top('doubles what is not there'));
    else if (effect === 'fetch')
      this.#stack.push(this.#memo.get(this.#key(text())) ?? this.#break('fetches what it never kept'));
    else if (effect === 'keep') {
      const top = this.#top('keeps what is not there');
      this.#memo.set(opcode.argument === 'none' ? String(this.#memo.size) : this.#key(text()), top);
      if (this.#memo.size > PICKLE_MEMO_MAX) this.#break('remembers too much');
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
   * Parses a memo number that is a text. Python reads `p1_0`, `p+10` and `p 10` as 10: a different reading
   * follows another pickle, so only the unambiguous form is accepted.
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
