import { parquetReadObjects } from 'hyparquet';
import { expect, it } from 'vitest';
import { deriveFile } from '../../../shared/audit/derived/formats.ts';
import { type DerivedEntry, DerivedRow } from '../../../shared/audit/derived/row.ts';

const context = { origin: 'audit.example/eu/2026', note: '' };
const entry = (index: number, leaf: Record<string, unknown>): DerivedEntry => ({
  index,
  leafHash: 'ab',
  leaf,
  shown: {},
});

it('C12 a Parquet file reads back with its types and absent cells', async () => {
  const rows = [
    entry(2 ** 40, { id: 'e1', type: 'inference.complete', t: { origin: 1_700_000_000_000 }, audioSeconds: 1.5 }),
    entry(7, { id: 'é2', type: 'log.tick' }),
  ].map((one) => new DerivedRow(one, context));
  const file = deriveFile('parquet', rows, context).buffer;
  const [first, second] = await parquetReadObjects({ file });
  expect(first).toMatchObject({
    ...{ log: 'audit.example/eu/2026', index: 2n ** 40n, id: 'e1', audio_seconds: 1.5 },
    time: new Date(1_700_000_000_000),
  });
  expect(second).toMatchObject({ index: 7n, id: 'é2' });
  expect([second?.time ?? null, second?.audio_seconds ?? null]).toEqual([null, null]);
});

it('C12 the same entries give the same Parquet bytes', () => {
  const make = () => deriveFile('parquet', [new DerivedRow(entry(1, { id: 'e' }), context)], context);
  expect(make()).toEqual(make());
});
