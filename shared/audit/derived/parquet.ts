// Parquet, as little of it as a table of a few thousand rows needs: one row group, one page for each column, plain and not
// compressed, so that the same rows are the same bytes wherever they are written. Metadata are in Thrift's compact protocol.
import { concat, joined } from '../../seal/bytes.ts';
import { type Cell, type Column, columns, type Deriving } from './row.ts';

const encoder = new TextEncoder();
const MAGIC = encoder.encode('PAR1');

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
const text = (value: string): Thrift => binary(encoder.encode(value));

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

function withLength(bytes: Uint8Array): Uint8Array {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, bytes.length, true);
  return concat(length, bytes);
}

/** The cells of one column, as bytes from the beginning. */
class ColumnBytes {
  readonly type: Column['type'];
  /** For each row a one if it has a value, else a zero, in runs. */
  readonly #runs: { readonly present: boolean; count: number }[] = [];
  #bytes = new Uint8Array(1_024);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  constructor(type: Column['type']) {
    this.type = type;
  }

  add(cell: Cell): void {
    const run = this.#runs.at(-1);
    if (run?.present === (cell !== undefined)) run.count += 1;
    else this.#runs.push({ present: cell !== undefined, count: 1 });
    if (typeof cell === 'string') this.#addText(cell);
    else if (cell !== undefined) this.#addNumber(cell);
  }

  #addText(cell: string): void {
    // No character of UTF-16 is longer than three bytes of UTF-8.
    this.#reserve(4 + 3 * cell.length);
    const { written } = encoder.encodeInto(cell, this.#bytes.subarray(this.#length + 4));
    this.#view.setUint32(this.#length, written, true);
    this.#length += 4 + written;
  }

  #addNumber(cell: number): void {
    this.#reserve(8);
    if (this.type === 'number') this.#view.setFloat64(this.#length, cell, true);
    else this.#view.setBigInt64(this.#length, BigInt(cell), true);
    this.#length += 8;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const longer = new Uint8Array(2 * (this.#length + count));
    longer.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = longer;
    this.#view = new DataView(longer.buffer);
  }

  page(rows: number): Uint8Array {
    const runs = this.#runs.map(({ present, count }) => concat(varint(count * 2), Uint8Array.of(present ? 1 : 0)));
    const data = concat(withLength(joined(runs)), this.#bytes.subarray(0, this.#length));
    const header = struct({ 1: i32(PLAIN), 2: i32(data.length), 3: i32(data.length), 5: pageHeader(rows) });
    return concat(header.bytes, data);
  }
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

export function openParquet(): Deriving {
  const made = columns.map(({ type }) => new ColumnBytes(type));
  let rows = 0;
  return {
    head: '',
    add({ cells }) {
      rows += 1;
      for (const [at, column] of made.entries()) column.add(cells[at]);
      return '';
    },
    end: () => fileOf(made, rows),
  };
}

function fileOf(made: readonly ColumnBytes[], rows: number): Uint8Array[] {
  const pages: Uint8Array[] = [MAGIC];
  let offset = MAGIC.length;
  const chunks = columns.map(({ name, type }, at) => {
    const page = (made[at] as ColumnBytes).page(rows);
    const start = offset;
    pages.push(page);
    offset += page.length;
    const metadata = struct({
      ...{
        1: i32(TYPES[type].physical),
        2: list(I32, [i32(PLAIN), i32(RLE)]),
        3: list(BINARY, [text(name)]),
      },
      ...{ 4: i32(0), 5: i64(rows), 6: i64(page.length), 7: i64(page.length), 9: i64(start) },
    });
    return struct({ 2: i64(start), 3: metadata });
  });
  const group = struct({ 1: list(STRUCT, chunks), 2: i64(offset - MAGIC.length), 3: i64(rows) });
  const footer = struct({
    ...{ 1: i32(1), 2: schema(), 3: i64(rows), 4: list(STRUCT, [group]), 6: text('auricle') },
  }).bytes;
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, footer.length, true);
  return [...pages, footer, length, MAGIC];
}
