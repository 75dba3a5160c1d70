import { describe, expect, it } from 'vitest';
import { verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { ExportedLog, readerOf } from './exported-log.ts';

const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
const linesOf = (bytes: Uint8Array | undefined) =>
  text(bytes)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('C9 A21 an export of a tenant', () => {
  it('holds all its numbers up to the leaf that says that it was made, and verifies', async () => {
    const log = new ExportedLog();
    await log.write('ann', 300);
    await log.write('bob', 400);
    await log.write('ann', 20);
    const files = await log.export('ann');
    const report = await verifyBundle(readerOf(files), { now: log.now });
    expect(report.findings).toEqual([
      { stage: 'checkpoints', verdict: 'unwitnessed', text: expect.stringContaining('no witness') },
    ]);
    expect(report).toMatchObject({ verdict: 'unwitnessed', exit: 10 });
    expect(report.facts).toMatchObject({ tenant: 'ann', tseq: [1, 321], entries: 322, disclosed: 321, erased: 0 });
    const entries = linesOf(files.get('entries.ndjson'));
    expect(entries.at(-1).leaf).toMatchObject({ type: 'export.create', tn: 'ann', tseq: 321 });
    expect(text(files.get('entries.ndjson'))).not.toContain('"bob"');
  });
});
