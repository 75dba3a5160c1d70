// Entries as a Parquet table. Uncompressed and without statistics, so that the same rows are the same bytes wherever they are
// written.
import { parquetWriteBuffer } from 'hyparquet-writer';
import { type Cell, type Column, columns, type Deriving, isoTime } from './row.ts';

const TYPES = { text: 'STRING', integer: 'INT64', number: 'DOUBLE', time: 'TIMESTAMP' } as const;

/** Converts a cell to the value that the writer takes for the type of its column. */
function parquetValue(type: Column['type'], cell: Cell): unknown {
  if (typeof cell !== 'number' || type === 'number') return cell;
  if (type === 'integer') return BigInt(cell);
  return isoTime(cell) === undefined ? undefined : new Date(cell);
}

/** Starts a Parquet file. Stores all cells until the file ends, since columns follow each other in it. */
export function openParquet(): Deriving {
  const table = columns.map(({ name, type }) => ({ name, type, data: [] as unknown[] }));
  return {
    head: '',
    add({ cells }) {
      for (const [at, { type, data }] of table.entries()) data.push(parquetValue(type, cells[at]));
      return '';
    },
    end() {
      const columnData = table.map(({ name, type, data }) => ({ name, data, type: TYPES[type] }));
      const bytes = parquetWriteBuffer({ columnData, codec: 'UNCOMPRESSED', statistics: false, createdBy: 'auricle' });
      return [new Uint8Array(bytes)];
    },
  };
}
