// Parquet, as little of it as a table of a few thousand rows needs: one row group, one page for each column, plain and not
// compressed, so that the same rows are the same bytes wherever they are written. Metadata are in Thrift's compact protocol.
import { concat } from '../../seal/bytes.ts';
import { type Cell, type Column, cellOf, columns, type DerivedContext, type DerivedEntry } from './row.ts';

const MAGIC = new TextEncoder().encode('PAR1');
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

// Thrift's numbers for the types that occur here.
const [I32, I64, BINARY, LIST, STRUCT] = [5, 6, 8, 9, 12];

/** Parquet's own: physical type, and what it means. */
const TYPES = {
  text: { physical: 6, converted: 0 },
  integer: { physical: 2, converted: undefined },
  number: { physical: 5, converted: undefined },
  time: { physical: 2, converted: 9 },
} as const;
const [PLAIN, RLE] = [0, 3];

type Thrift = { readonly type: number; readonly bytes: Uint8Array };

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Uint8Array.of(...bytes, rest);
}

/** Nothing here is negative, so the zigzag is a doubling. */
const i32 = (value: number): Thrift => ({ type: I32, bytes: varint(value * 2) });
const i64 = (value: number): Thrift => ({ type: I64, bytes: varint(value * 2) });
const binary = (value: Uint8Array): Thrift => ({ type: BINARY, bytes: concat(varint(value.length), value) });
const text = (value: string): Thrift => binary(encode(value));

function list(of: number, items: readonly Thrift[]): Thrift {
  const head =
    items.length < 15 ? Uint8Array.of(items.length * 16 + of) : concat(Uint8Array.of(0xf0 + of), varint(items.length));
  return { type: LIST, bytes: concat(head, ...items.map(({ bytes }) => bytes)) };
}

/** Fields by their rising numbers. */
function struct(fields: Readonly<Record<number, Thrift | undefined>>): Thrift {
  const parts: Uint8Array[] = [];
  let before = 0;
  for (const [number, field] of Object.entries(fields)) {
    if (!field) continue;
    parts.push(Uint8Array.of((Number(number) - before) * 16 + field.type), field.bytes);
    before = Number(number);
  }
  return { type: STRUCT, bytes: concat(...parts, Uint8Array.of(0)) };
}

/** For each row a one if it has a value, else a zero, in runs. */
function definitionLevels(cells: readonly Cell[]): Uint8Array {
  const runs: Uint8Array[] = [];
  for (let from = 0; from < cells.length; ) {
    const present = cells[from] !== undefined;
    let to = from + 1;
    while (to < cells.length && (cells[to] !== undefined) === present) to += 1;
    runs.push(concat(varint((to - from) * 2), Uint8Array.of(present ? 1 : 0)));
    from = to;
  }
  return withLength(concat(...runs));
}

function withLength(bytes: Uint8Array): Uint8Array {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, bytes.length, true);
  return concat(length, bytes);
}

function valueBytes(type: Column['type'], cell: string | number): Uint8Array {
  if (typeof cell === 'string') return withLength(encode(cell));
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  if (type === 'number') view.setFloat64(0, cell, true);
  else view.setBigInt64(0, BigInt(cell), true);
  return bytes;
}

function pageOf(type: Column['type'], cells: readonly Cell[]): Uint8Array {
  const values = cells.flatMap((cell) => (cell === undefined ? [] : [valueBytes(type, cell)]));
  const data = concat(definitionLevels(cells), ...values);
  const header = struct({ 1: i32(PLAIN), 2: i32(data.length), 3: i32(data.length), 5: pageHeader(cells.length) });
  return concat(header.bytes, data);
}

const pageHeader = (rows: number): Thrift => struct({ 1: i32(rows), 2: i32(PLAIN), 3: i32(RLE), 4: i32(RLE) });

const OPTIONAL = 1;

function schema(): Thrift {
  const root = struct({ 4: text('events'), 5: i32(columns.length) });
  const elements = columns.map(({ name, type }) => {
    const { physical, converted } = TYPES[type];
    const meaning = converted === undefined ? undefined : i32(converted);
    return struct({ 1: i32(physical), 3: i32(OPTIONAL), 4: text(name), 6: meaning });
  });
  return list(STRUCT, [root, ...elements]);
}

export function deriveParquet(entries: readonly DerivedEntry[], context: DerivedContext): Uint8Array<ArrayBuffer> {
  const pages: Uint8Array[] = [MAGIC];
  let offset = MAGIC.length;
  const chunks = columns.map((column) => {
    const page = pageOf(
      column.type,
      entries.map((entry) => cellOf(column, entry, context)),
    );
    const start = offset;
    pages.push(page);
    offset += page.length;
    const metadata = struct({
      ...{
        1: i32(TYPES[column.type].physical),
        2: list(I32, [i32(PLAIN), i32(RLE)]),
        3: list(BINARY, [text(column.name)]),
      },
      ...{ 4: i32(0), 5: i64(entries.length), 6: i64(page.length), 7: i64(page.length), 9: i64(start) },
    });
    return struct({ 2: i64(start), 3: metadata });
  });
  const group = struct({ 1: list(STRUCT, chunks), 2: i64(offset - MAGIC.length), 3: i64(entries.length) });
  const footer = struct({
    ...{ 1: i32(1), 2: schema(), 3: i64(entries.length), 4: list(STRUCT, [group]), 6: text('auricle') },
  }).bytes;
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, footer.length, true);
  return concat(...pages, footer, length, MAGIC);
}
