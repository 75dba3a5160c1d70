import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NumberTable } from '../../../infra/pool/agent/asr/decode/number-table.ts';

it('A24 a number table holds what a map holds', () => {
  const key = fc.oneof(fc.nat(20), fc.maxSafeNat());
  fc.assert(
    fc.property(fc.array(fc.tuple(key, fc.double({ noNaN: true }))), fc.array(key), (entries, others) => {
      const map = new Map(entries);
      const table = new NumberTable(map.size);
      for (const [at, value] of entries) table.set(at, value);
      for (const at of [...map.keys(), ...others]) expect(table.get(at)).toBe(map.get(at));
    }),
  );
});
