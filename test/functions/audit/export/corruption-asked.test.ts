// The rows of the corruption matrix that take whoever makes exports: a bundle of something else than was asked for.

import { describe, expect, it } from 'vitest';
import { advanceExport } from '../../../../functions/audit/export/advance-export.ts';
import { type ExportRow, findExport, replaceExport } from '../../../../functions/audit/export/export-row.ts';
import type { NewExport } from '../../../../shared/audit/bundle/contract.ts';
import { verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { ExportedLog, readerOf, ZONE } from './exported-log.ts';

describe('C9 corruption matrix: by whoever makes the export and has the key of the log', () => {
  /** An export that is made of another row than was asked for, and signed by the log. */
  const madeOf = async (
    more: Partial<NewExport>,
    change: Partial<ExportRow>,
    state: ExportRow['state'] = 'collecting',
  ) => {
    const story = new ExportedLog();
    await story.write('ann', 10);
    const from = story.now + 1;
    await story.write('ann', 10);
    const later = story.now + 1;
    await story.write('ann', 10);
    const asked = await story.ask('ann', { query: { from, ...more.query }, formats: [] });
    await story.commit();
    for (let steps = 0; steps < 50; steps += 1) {
      const row = await story.row(asked);
      if (row.state === state && row.back === undefined) break;
      await advanceExport(story.desk, ZONE, 'ann', asked.id);
      story.now = Math.max(story.now, row.due);
    }
    const kept = await findExport(story.rows, ZONE, 'ann', asked.id);
    if (!kept) throw new Error('no such export');
    const query = change.query?.from === 0 ? { query: { from: later } } : {};
    await replaceExport(story.rows, { ...kept.row, ...change, ...query }, kept);
    const files = story.files(await story.finish(asked));
    return verifyBundle(readerOf(files), { now: story.now });
  };

  it('from a time on, as it was asked for: nothing is wrong', async () => {
    expect((await madeOf({}, {})).verdict).toBe('unwitnessed');
  });

  it('from a time on, without the entry before it, or without the first ones', async () => {
    for (const begin of [11, 15, 22]) {
      const report = await madeOf({}, { begin });
      expect(report.verdict, `from entry ${begin} on`).toBe('incomplete');
      expect(report.findings).toContainEqual({
        ...{ stage: 'numbers', verdict: 'incomplete' },
        text: `the tenant's entry before number ${begin} is missing, which would show that none is left out`,
      });
    }
  });

  it('of a narrower range than the export was asked for, by time or by numbers', async () => {
    const later = await madeOf({}, { query: { from: 0 } }, 'anchoring');
    const numbered = await madeOf({}, { query: { tseq_from: 25 } }, 'anchoring');
    const shorter = await madeOf({ query: { tseq_from: 5 } }, { query: { tseq_from: 15 } }, 'anchoring');
    const text = 'the manifest names another range or profile than the export was made for';
    for (const report of [later, numbered, shorter])
      expect(report.findings).toContainEqual({ stage: 'numbers', verdict: 'invalid', text });
  });

  it('of a profile that shows less than the one that it was asked for', async () => {
    const report = await madeOf({}, { redaction: 'auditor-min' }, 'anchoring');
    expect(report.verdict).toBe('invalid');
  });
});
