// Counts of recordings in an agent, and their reports to the functions.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LiveBook } from '../../../../infra/pool/agent/live-counts/book.ts';
import {
  createLiveReporter,
  LIVE_QUIET_REPORTS_MAX,
  LIVE_REPORT_S,
} from '../../../../infra/pool/agent/live-counts/report.ts';
import { newTally, streamOf, type Tally } from '../../../../infra/pool/agent/live-counts/tally.ts';
import { type Reason, refuse } from '../../../../shared/refusal.ts';
import {
  LIVE_REPORT_REVISIONS_MAX,
  type LiveReport,
  liveProofOf,
  liveReport,
} from '../../../../shared/registry/live-report.ts';
import { no, ok } from '../../../../shared/result.ts';
import { testDescription } from '../start-agent.ts';

const done = ok(undefined);
const heard = (changes: Partial<Tally> = {}): Tally => ({
  ...newTally(1_000),
  ...{ isRecording: true, totals: { seconds: 10, speechSeconds: 6 }, segments: 2 },
  ...changes,
});
const failed = (reason: Reason) => no(refuse(reason));

describe('C7: counts of a recording', () => {
  it('have the time for a second of sound, without the caller’s own delay', () => {
    expect(streamOf(heard({ waited: 400 }), done, 3_400)).toEqual({ outcome: 'served', milliseconds: 200 });
    const short = heard({ totals: { seconds: 0.2, speechSeconds: 0.1 } });
    expect(streamOf(short, done, 1_100)).toEqual({ outcome: 'served', milliseconds: 100 });
  });

  it('count a failure for the revision’s own faults only', () => {
    for (const reason of ['engine_failed', 'internal', 'deadline_passed'] as const) {
      expect(streamOf(heard(), failed(reason), 2_000)?.outcome).toBe('failed');
    }
    for (const reason of ['form_invalid', 'pool_busy', 'pool_lost', 'hints_conflict'] as const) {
      expect(streamOf(heard(), failed(reason), 2_000), reason).toBeUndefined();
    }
    expect(streamOf({ ...heard(), isRecording: false }, failed('internal'), 2_000)).toBeUndefined();
  });

  it('is that no word came of speech; silence has none', () => {
    expect(streamOf(heard({ segments: 0 }), done, 2_000)?.outcome).toBe('empty');
    const silence = { seconds: 10, speechSeconds: 0.3 };
    expect(streamOf(heard({ segments: 0, totals: silence }), done, 2_000)?.outcome).toBe('served');
  });

  it('compare a copy with the served text', () => {
    const copy = { served: 'one two three', texts: ['one', 'two four'] };
    expect(streamOf(heard({ copy }), done, 2_000)).toMatchObject({
      outcome: 'served',
      compared: { words: 3, errors: 1 },
    });
    const mute = { served: 'one', texts: [] };
    expect(streamOf(heard({ copy: mute, segments: 0 }), done, 2_000)).toMatchObject({ outcome: 'empty' });
    const both = { served: '', texts: [] };
    expect(streamOf(heard({ copy: both, segments: 0 }), done, 2_000)).toMatchObject({ outcome: 'served' });
  });
});

describe('C7: reports of counts', () => {
  const sent: { report: LiveReport; text: string; headers: Headers; url: string; proof: string }[] = [];
  let status = 200;
  const lines: string[] = [];

  beforeEach(() => {
    sent.length = 0;
    lines.length = 0;
    status = 200;
    vi.useFakeTimers();
    vi.stubGlobal('fetch', async (url: URL, init: RequestInit) => {
      const { report, proof } = JSON.parse(String(init.body));
      const headers = new Headers(init.headers);
      sent.push({ report: liveReport.parse(JSON.parse(report)), text: report, headers, url: String(url), proof });
      return new Response('{}', { status });
    });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  function start(book: LiveBook) {
    const keys = {
      boot: 'a-boot-of-this-agent',
      current: () => ({ token: 'attested', expires: 0 }),
      sign: async (payload: unknown, type?: string) => JSON.stringify({ payload, type }),
    };
    const teller = createLiveReporter({
      url: 'http://functions',
      agent: 'agent-1',
      keys,
      token: () => 'pool',
      now: () => 5_000,
      book,
      describe: () => [testDescription, { ...testDescription, name: 'voice', task: 'synthesize' }],
      log: (event) => void lines.push(event),
    });
    teller.start();
    return teller;
  }
  const beat = (times = 1) => vi.advanceTimersByTimeAsync(times * LIVE_REPORT_S * 1_000);

  it('carry all counts, signed; refused ones are in the next report', async () => {
    const book = new LiveBook();
    const teller = start(book);
    book.ended(testDescription, heard(), done, 2_000);
    book.ended(testDescription, heard({ copy: { served: 'a', texts: ['b'] } }), done, 2_000);
    await beat();
    const [first] = sent;
    expect(first?.url).toBe('http://functions/api/agents/live');
    expect(first?.headers.get('authorization')).toBe('Bearer pool');
    expect(JSON.parse(first?.proof ?? '')).toMatchObject({
      payload: { job: liveProofOf(first?.text ?? ''), agent: 'agent-1', attestation: 'attested' },
      type: 'auricle-agent-proof+jws',
    });
    const model = { model: 'test-en', revision: testDescription.revision };
    expect(first?.report).toMatchObject({ boot: 'a-boot-of-this-agent', began: 5_000, seq: 1 });
    expect(first?.report.models).toMatchObject([
      { ...model, served: { streams: 1 }, mirrored: { streams: 1, errors: 1 } },
    ]);
    status = 503;
    book.ended(testDescription, heard(), failed('engine_failed'), 2_000);
    await beat(2);
    status = 200;
    await beat();
    expect(sent.map(({ report }) => report.seq)).toEqual([1, 2, 3, 4]);
    expect(sent.at(-1)?.report.models).toMatchObject([{ served: { streams: 2, failed: 1 } }]);
    expect(lines).toEqual(['live-report-failed']);
    await teller.stop();
    expect(sent).toHaveLength(4);
  });

  it('name the present revisions now and then, even while idle', async () => {
    const teller = start(new LiveBook());
    await beat();
    expect(sent[0]?.report.models).toEqual([{ model: 'test-en', revision: testDescription.revision }]);
    await beat(LIVE_QUIET_REPORTS_MAX - 1);
    expect(sent).toHaveLength(1);
    await beat();
    expect(sent).toHaveLength(2);
    await teller.stop();
  });

  it('with more revisions than fit, the last counted are reported', () => {
    const book = new LiveBook();
    const most = LIVE_REPORT_REVISIONS_MAX;
    for (let at = 0; at < most + 5; at += 1) book.ended({ ...testDescription, name: `m-${at}` }, heard(), done, 2_000);
    const told = book.models([]);
    expect(told).toHaveLength(most);
    expect(told[0]?.model).toBe('m-5');
  });
});
