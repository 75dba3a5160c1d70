/** Encoding of an opcode's argument. */
type Argument =
  | 'none'
  | 'byte'
  | 'two'
  | 'four'
  | 'eight'
  | 'line'
  | 'two lines'
  | 'counted 1'
  | 'counted 4'
  | 'counted 8';

/** Effect of an opcode on the machine's stack, as far as it determines imported names. */
export type Effect =
  /** Pops `take` values and pushes `leave` unknown ones. */
  | { readonly take: number; readonly leave: number }
  | 'text'
  | 'mark'
  /** Pops everything above the mark and `toMark` values below it; pushes `leave` values. */
  | { readonly toMark: number; readonly leave: number }
  | 'keep'
  | 'fetch'
  | 'global'
  | 'global from stack'
  | 'global with mark'
  | 'double'
  | 'nothing'
  | 'stop';

export interface Opcode {
  readonly name: string;
  readonly argument: Argument;
  readonly effect: Effect;
}

const value = { take: 0, leave: 1 } as const;
const combine = (take: number) => ({ take, leave: 1 }) as const;

/**
 * Opcodes of protocols 0 to 5. Any other is refused. EXT1, EXT2 and EXT4 are left out: they import by number.
 */
const table: readonly (readonly [code: string, name: string, argument: Argument, effect: Effect])[] = [
  ['(', 'MARK', 'none', 'mark'],
  ['.', 'STOP', 'none', 'stop'],
  ['0', 'POP', 'none', { take: 1, leave: 0 }],
  ['1', 'POP_MARK', 'none', { toMark: 0, leave: 0 }],
  ['2', 'DUP', 'none', 'double'],
  ['F', 'FLOAT', 'line', value],
  ['I', 'INT', 'line', value],
  ['J', 'BININT', 'four', value],
  ['K', 'BININT1', 'byte', value],
  ['L', 'LONG', 'line', value],
  ['M', 'BININT2', 'two', value],
  ['N', 'NONE', 'none', value],
  ['P', 'PERSID', 'line', value],
  ['Q', 'BINPERSID', 'none', combine(1)],
  ['R', 'REDUCE', 'none', combine(2)],
  ['S', 'STRING', 'line', value],
  ['T', 'BINSTRING', 'counted 4', value],
  ['U', 'SHORT_BINSTRING', 'counted 1', value],
  ['V', 'UNICODE', 'line', value],
  ['X', 'BINUNICODE', 'counted 4', 'text'],
  ['a', 'APPEND', 'none', combine(2)],
  ['b', 'BUILD', 'none', combine(2)],
  ['c', 'GLOBAL', 'two lines', 'global'],
  ['d', 'DICT', 'none', { toMark: 0, leave: 1 }],
  ['}', 'EMPTY_DICT', 'none', value],
  ['e', 'APPENDS', 'none', { toMark: 1, leave: 1 }],
  ['g', 'GET', 'line', 'fetch'],
  ['h', 'BINGET', 'byte', 'fetch'],
  ['i', 'INST', 'two lines', 'global with mark'],
  ['j', 'LONG_BINGET', 'four', 'fetch'],
  ['l', 'LIST', 'none', { toMark: 0, leave: 1 }],
  [']', 'EMPTY_LIST', 'none', value],
  ['o', 'OBJ', 'none', { toMark: 0, leave: 1 }],
  ['p', 'PUT', 'line', 'keep'],
  ['q', 'BINPUT', 'byte', 'keep'],
  ['r', 'LONG_BINPUT', 'four', 'keep'],
  ['s', 'SETITEM', 'none', combine(3)],
  ['t', 'TUPLE', 'none', { toMark: 0, leave: 1 }],
  [')', 'EMPTY_TUPLE', 'none', value],
  ['u', 'SETITEMS', 'none', { toMark: 1, leave: 1 }],
  ['G', 'BINFLOAT', 'eight', value],
  ['\x80', 'PROTO', 'byte', 'nothing'],
  ['\x81', 'NEWOBJ', 'none', combine(2)],
  ['\x85', 'TUPLE1', 'none', combine(1)],
  ['\x86', 'TUPLE2', 'none', combine(2)],
  ['\x87', 'TUPLE3', 'none', combine(3)],
  ['\x88', 'NEWTRUE', 'none', value],
  ['\x89', 'NEWFALSE', 'none', value],
  ['\x8a', 'LONG1', 'counted 1', value],
  ['\x8b', 'LONG4', 'counted 4', value],
  ['B', 'BINBYTES', 'counted 4', value],
  ['C', 'SHORT_BINBYTES', 'counted 1', value],
  ['\x8c', 'SHORT_BINUNICODE', 'counted 1', 'text'],
  ['\x8d', 'BINUNICODE8', 'counted 8', 'text'],
  ['\x8e', 'BINBYTES8', 'counted 8', value],
  ['\x8f', 'EMPTY_SET', 'none', value],
  ['\x90', 'ADDITEMS', 'none', { toMark: 1, leave: 1 }],
  ['\x91', 'FROZENSET', 'none', { toMark: 0, leave: 1 }],
  ['\x92', 'NEWOBJ_EX', 'none', combine(3)],
  ['\x93', 'STACK_GLOBAL', 'none', 'global from stack'],
  ['\x94', 'MEMOIZE', 'none', 'keep'],
  ['\x95', 'FRAME', 'eight', 'nothing'],
  ['\x96', 'BYTEARRAY8', 'counted 8', value],
  ['\x97', 'NEXT_BUFFER', 'none', value],
  ['\x98', 'READONLY_BUFFER', 'none', combine(1)],
];

export const opcodes: ReadonlyMap<number, Opcode> = new Map(
  table.map(([code, name, argument, effect]) => [code.charCodeAt(0), { name, argument, effect }]),
);
