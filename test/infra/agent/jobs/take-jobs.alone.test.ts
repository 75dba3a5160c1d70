import { Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { JobEnd } from '../../../../infra/pool/agent/jobs/do-job.ts';
import type { JobQueue, Message } from '../../../../infra/pool/agent/jobs/job-queue.ts';
import { createBatchMetrics } from '../../../../infra/pool/agent/jobs/metrics.ts';
import {
  createTaker,
  JOB_RETRY_MAX_S,
  retrySeconds,
  type TakerOptions,
} from '../../../../infra/pool/agent/jobs/take-jobs.ts';
import type { UploadJob } from '../../../../shared/jobs/job.ts';
import { JOB_VISIBILITY_S } from '../../../../shared/jobs/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { UPLOAD } from '../../../fake/job.ts';

const jobOf = (piece: number, more: Partial<UploadJob> = {}): UploadJob => ({
  v: 1,
  kind: 'work',
  tenant: 'acme',
  upload: UPLOAD,
  run: 1,
  piece,
  attempt: 1,
  zone: 'eu',
  class: 'batch',
  ...more,
});
const messageOf = (job: unknown, receipt: string, receives = 1): Message => ({
  body: typeof job === 'string' ? job : JSON.stringify(job),
  receipt,
  receives,
});

/** A queue that gives what is put into it, and remembers what it is told. */
function createFakeQueue() {
  const told: string[] = [];
  const waiting: Message[] = [];
  let wake = () => {};
  const double = {
    told,
    asked: [] as number[],
    fail: 0,
    put(...messages: Message[]) {
      waiting.push(...messages);
      wake();
    },
    queue: {
      async receive(count, signal) {
        double.asked.push(count);
        if (double.fail > 0) {
          double.fail--;
          throw Object.assign(new Error('secret address'), { name: 'NetworkError' });
        }
        while (waiting.length === 0) {
          await new Promise<void>((resolve, reject) => {
            wake = resolve;
            signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
            if (signal.aborted) reject(new Error('aborted'));
          });
        }
        return waiting.splice(0, count);
      },
      async keep(receipt, seconds) {
        told.push(`keep ${receipt} ${seconds}`);
      },
      async remove(receipt) {
        told.push(`remove ${receipt}`);
      },
      close: () => told.push('close'),
    } satisfies JobQueue,
  };
  return double;
}

interface Scene extends Partial<TakerOptions> {
  readonly most?: number;
  /** Number of failed polls before the queue answers. */
  readonly fail?: number;
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const stop of stops.splice(0)) await stop();
});

function begin({ most = 2, fail = 0, ...more }: Scene = {}) {
  const double = createFakeQueue();
  double.fail = fail;
  const lines: string[] = [];
  const ends = new Map<string, (end: JobEnd) => void>();
  const registry = new Registry();
  const taker = createTaker({
    queue: double.queue,
    zone: 'eu',
    doJob: ({ piece }, stopped) =>
      new Promise((resolve) => {
        ends.set(String(piece), resolve);
        const stop = () => resolve({ type: 'failed', refusal: refuse('pool_busy', undefined, 'agent stops') });
        stopped.addEventListener('abort', stop);
      }),
    capacity: (busy) => most - busy,
    metrics: createBatchMetrics(registry, () => taker.busy()),
    log: (event, fields) => lines.push(JSON.stringify({ event, ...fields })),
    now: Date.now,
    random: () => 0,
    pauseMs: 1,
    ...more,
  });
  stops.push(() => taker.stop(0));
  taker.start();
  return { taker, double, lines, ends, registry };
}

const settled = { timeout: 5_000, interval: 1 };

describe('an agent takes jobs (C11)', () => {
  it('takes jobs while it has capacity, and removes done, unwanted and refused ones', async () => {
    const { double, ends, taker, lines } = begin();
    double.put(...[0, 1, 2, 3].map((piece) => messageOf(jobOf(piece), `r${piece}`)));
    await expect.poll(() => ends.size, settled).toBe(2);
    expect(taker.busy()).toBe(2);
    ends.get('1')?.({ type: 'done', seconds: 600 });
    await expect.poll(() => ends.has('2'), settled).toBe(true);
    ends.get('0')?.({ type: 'unwanted' });
    await expect.poll(() => ends.has('3'), settled).toBe(true);
    ends.get('2')?.({ type: 'refused', refusal: refuse('audio_empty') });
    ends.get('3')?.({ type: 'done' });
    await expect.poll(() => double.told, settled).toEqual(['remove r1', 'remove r0', 'remove r2', 'remove r3']);
    expect(lines).toEqual(['{"event":"job-refused","job":"work","reason":"audio_empty","count":1}']);
  });

  it('asks for none while others wait for the engine', async () => {
    let room = 0;
    const { double } = begin({ capacity: () => room });
    double.put(messageOf(jobOf(0), 'r0'));
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    expect(double.asked).toEqual([]);
    room = 1;
    await expect.poll(() => double.asked.length, settled).toBeGreaterThan(0);
  });

  it('leaves a failed job in the queue, for longer each time, until moved aside', async () => {
    const { double, ends } = begin({ most: 1 });
    for (const receives of [1, 2, 4]) {
      double.put(messageOf(jobOf(receives), `r${receives}`, receives));
      await expect.poll(() => ends.has(String(receives)), settled).toBe(true);
      ends.get(String(receives))?.({ type: 'failed', refusal: refuse('engine_failed') });
    }
    await expect.poll(() => double.told, settled).toEqual(['keep r1 5', 'keep r2 20', 'keep r4 45']);
    expect(retrySeconds(30)).toBe(JOB_RETRY_MAX_S);
  });

  it('takes fewer while its dependencies are unreachable, so that five tries outlive them', async () => {
    vi.useFakeTimers();
    let taken = 0;
    const { double } = begin({
      most: 1,
      doJob: async () => {
        taken++;
        return { type: 'failed', refusal: refuse('uploads_unavailable') };
      },
    });
    double.put(...Array.from({ length: 100 }, (_, piece) => messageOf(jobOf(piece % 9), `r${piece}`)));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(taken).toBeGreaterThan(5);
    expect(taken).toBeLessThan(15);
  });

  it('gives back unreadable jobs and jobs of another zone', async () => {
    const { double, lines, registry } = begin();
    const { piece: _, ...noPiece } = jobOf(0);
    double.put(
      messageOf('not json: secret words', 'r0'),
      messageOf(noPiece, 'r1'),
      messageOf(jobOf(0, { zone: 'us' }), 'r2'),
      messageOf({ ...jobOf(0), tenant: '../x' }, 'r3'),
    );
    await expect.poll(() => double.told.length, settled).toBe(4);
    expect(double.told.sort()).toEqual(['keep r0 0', 'keep r1 0', 'keep r2 0', 'keep r3 0']);
    expect(lines.join()).not.toContain('secret words');
    expect(await registry.metrics()).toContain('auricle_agent_jobs_total{kind="unreadable",outcome="unreadable"} 4');
  });

  it('keeps a job while it is worked on, and not longer', async () => {
    vi.useFakeTimers();
    const { double, ends } = begin();
    double.put(messageOf(jobOf(0), 'r0'));
    await vi.advanceTimersByTimeAsync(1);
    const visible = JOB_VISIBILITY_S;
    await vi.advanceTimersByTimeAsync(visible * 1_000);
    expect(double.told).toEqual(new Array(3).fill(`keep r0 ${visible}`));
    ends.get('0')?.({ type: 'done' });
    await vi.advanceTimersByTimeAsync(10 * visible * 1_000);
    expect(double.told.slice(3)).toEqual(['remove r0']);
  });

  it('goes on when the queue was away, without its words in the log', async () => {
    const { double, ends, lines } = begin({ fail: 3 });
    double.put(messageOf(jobOf(0), 'r0'));
    await expect.poll(() => ends.has('0'), settled).toBe(true);
    expect(lines).toEqual(['{"event":"queue-lost","detail":"NetworkError"}', '{"event":"queue-back"}']);
    ends.get('0')?.({ type: 'done' });
  });

  it('survives a queue that does not take its word: the job comes again', async () => {
    const { double, ends, taker } = begin({ most: 1 });
    vi.spyOn(double.queue, 'remove').mockRejectedValueOnce(new Error('gone'));
    double.put(messageOf(jobOf(0), 'r0'), messageOf(jobOf(1), 'r1'));
    await expect.poll(() => ends.has('0'), settled).toBe(true);
    ends.get('0')?.({ type: 'done' });
    await expect.poll(() => ends.has('1'), settled).toBe(true);
    ends.get('1')?.({ type: 'done' });
    await expect.poll(() => taker.busy(), settled).toBe(0);
    expect(double.told).toEqual(['remove r1']);
  });
});

describe('an agent that stops', () => {
  it('takes no more, and finishes what it has', async () => {
    const { double, ends, taker } = begin();
    double.put(messageOf(jobOf(0), 'r0'));
    await expect.poll(() => ends.has('0'), settled).toBe(true);
    taker.drain();
    double.put(messageOf(jobOf(1), 'r1'));
    const stopped = taker.stop(60_000);
    ends.get('0')?.({ type: 'done' });
    await stopped;
    expect(double.told).toEqual(['remove r0', 'close']);
    expect(ends.has('1')).toBe(false);
  });

  it('does not wait for a hanging job', async () => {
    const { double, taker } = begin({ doJob: () => new Promise(() => {}) });
    double.put(messageOf(jobOf(0), 'r0'));
    await expect.poll(() => taker.busy(), settled).toBe(1);
    await taker.stop(1);
    expect(double.told).toEqual(['keep r0 0', 'close']);
  });

  it('gives back at once what takes longer than it may: another agent goes on', async () => {
    const { double, ends, taker } = begin();
    double.put(messageOf(jobOf(0), 'r0'));
    await expect.poll(() => ends.has('0'), settled).toBe(true);
    await taker.stop(1);
    expect(double.told).toEqual(['keep r0 0', 'close']);
  });
});
