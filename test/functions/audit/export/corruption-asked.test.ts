// Rows of the corruption matrix in which the exporter delivers another export than requested.

import { describe, expect, it } from 'vitest';
import { advanceExport } from '../../../../functions/audit/export/advance-export.ts';
import { type ExportRow, findExport, replaceExport } from '../../../../functions/audit/export/export-row.ts';
import { LogFiles } from '../../../../functions/audit/log/log-files.ts';
import type { NewExport } from '../../../../shared/audit/bundle/contract.ts';
import { blocksBetween } from '../../../../shared/audit/bundle/cover.ts';
import type { Manifest } from '../../../../shared/audit/bundle/manifest.ts';
import { verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { ExportedLog, readerOf, signedAgain, ZONE } from './exported-log.ts';

describe('C9 corruption matrix: by the holder of the log’s key while making the export', () => {
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

  it('from a time on, as requested: no finding', async () => {
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

  it('a narrower range than requested, by time or by numbers', async () => {
    const later = await madeOf({}, { query: { from: 0 } }, 'anchoring');
    const numbered = await madeOf({}, { query: { tseq_from: 25 } }, 'anchoring');
    const shorter = await madeOf({ query: { tseq_from: 5 } }, { query: { tseq_from: 15 } }, 'anchoring');
    const text = 'the manifest names another range or profile than the export was made for';
    for (const report of [later, numbered, shorter])
      expect(report.findings).toContainEqual({ stage: 'numbers', verdict: 'invalid', text });
  });

  it('a profile that shows less than requested', async () => {
    const report = await madeOf({}, { redaction: 'auditor-min' }, 'anchoring');
    expect(report.verdict).toBe('invalid');
  });
});

describe("C9 corruption matrix: the log's own word that an outbox was broken off", () => {
  const decode = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);

  /** Two lives of an outbox; the first ends with `last`, if that is anything. */
  async function twoLives(last?: Record<string, unknown>, named: Record<string, unknown> = {}) {
    const story = new ExportedLog();
    await story.write('bob', 2);
    const says = (type: string, more: Record<string, unknown> = {}) => {
      const { v, id, at, producer } = story.event('ann');
      return { v, id, at, producer, type, ...more };
    };
    const first = [says('producer.open'), story.event('ann'), story.event('ann')];
    await story.deliver('ann', last ? [...first, says('producer.close', last)] : first);
    await story.commit();
    const second = [says('producer.open', named), story.event('ann'), story.event('ann')];
    await story.deliver('ann', second, 0, '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f22');
    await story.commit();
    return { story, files: await story.export('ann', { formats: [] }) };
  }

  const findingsOf = async ({ story, files }: Awaited<ReturnType<typeof twoLives>>) => {
    const { verdict, findings } = await verifyBundle(readerOf(files), { now: story.now + 60_000 });
    return { verdict, texts: findings.filter(({ stage }) => stage === 'outboxes').map(({ text }) => text) };
  };

  /** The same bundle without some of its entries, whose hashes stand for them, signed again. */
  async function without({ story, files }: Awaited<ReturnType<typeof twoLives>>, hidden: RegExp) {
    const lines = decode(files.get('entries.ndjson')).trimEnd().split('\n');
    const kept = lines.filter((line) => !hidden.test(line));
    expect(kept.length).toBeLessThan(lines.length);
    const { checkpoints } = JSON.parse(decode(files.get('manifest.json'))) as Manifest;
    const cuts = checkpoints.map(({ size }) => size);
    const size = cuts.at(-1) ?? 0;
    const log = new LogFiles(story.store, ZONE, 2026, size);
    const proofs: Uint8Array[] = [];
    let left = 0;
    for (const index of [...kept.map((line) => Number(/"index":(\d+)/.exec(line)?.[1])), size]) {
      for (const { height, at } of blocksBetween(left, index, cuts)) proofs.push(await log.subtree(height, at));
      left = index + 1;
    }
    files.set('entries.ndjson', new TextEncoder().encode(`${kept.join('\n')}\n`));
    files.set('proofs/subtrees.bin', Buffer.concat(proofs));
    const change = (one: Manifest) => ({ ...one, counts: { ...one.counts, entries: kept.length } });
    return { story, files: await signedAgain(files, change) };
  }

  it('is in the bundle', async () => {
    expect(await findingsOf(await twoLives())).toEqual({
      verdict: 'incomplete',
      texts: [expect.stringMatching(/was broken off: events from 4 on may have been lost/)],
    });
  });

  it('replaced by its hash, and the beginning of the first life with it', async () => {
    const hidden = [/"type":"producer\.gap"/, /"type":"producer\.gap"|"pseq":1,[^\n]*5b0f11|5b0f11[^\n]*"pseq":1,/];
    for (const one of hidden)
      expect(await findingsOf(await without(await twoLives(), one)), String(one)).toEqual({
        verdict: 'incomplete',
        texts: [
          expect.stringMatching(/begins again, and nothing shows that all of it before \(.*5b0f11\) is in the log/),
        ],
      });
  });

  it('a gap between lives named by either life is no finding', async () => {
    const epoch = '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11';
    for (const story of [await twoLives({ last: 4 }), await twoLives(undefined, { previous: epoch, previousLast: 3 })])
      expect(await findingsOf(story)).toEqual({ verdict: 'unwitnessed', texts: [] });
  });

  it('the end of the first life replaced by its hash', async () => {
    const { verdict, texts } = await findingsOf(await without(await twoLives({ last: 4 }), /"type":"producer\.close"/));
    expect({ verdict, texts }).toEqual({ verdict: 'incomplete', texts: [expect.stringContaining('begins again')] });
  });
});
