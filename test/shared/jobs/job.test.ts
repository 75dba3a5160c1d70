import { describe, expect, it } from 'vitest';
import { deadQueue, jobKey, jobQueue, readJob, readsOf, type UploadJob, writesOf } from '../../../shared/jobs/job.ts';
import { outcomeMetadataOf, readOutcome } from '../../../shared/jobs/outcome.ts';

const upload = '019b76e2-9fa0-79ca-89f4-34e024e31141';
const plan: UploadJob = { v: 1, kind: 'plan', tenant: 'acme', upload, run: 1, attempt: 1, zone: 'eu', class: 'batch' };
const work: UploadJob = { ...plan, kind: 'work', piece: 3 };

describe('T4: a message per task', () => {
  it('survives a round trip, and names nothing but its work', () => {
    for (const job of [plan, work]) expect(readJob(JSON.stringify(job))).toEqual(job);
    expect(Object.keys(work).sort()).toEqual(
      ['attempt', 'class', 'kind', 'piece', 'run', 'tenant', 'upload', 'v', 'zone'].sort(),
    );
  });

  it.each([
    '',
    'null',
    '[]',
    JSON.stringify({ ...plan, v: 2 }),
    JSON.stringify({ ...plan, kind: 'other' }),
    JSON.stringify({ ...plan, piece: 1 }),
    JSON.stringify({ ...work, piece: undefined }),
    JSON.stringify({ ...work, piece: 90 }),
    JSON.stringify({ ...plan, tenant: '../x' }),
    JSON.stringify({ ...plan, upload: 'x' }),
    JSON.stringify({ ...plan, run: 0 }),
  ])('%s is no job', (body) => expect(readJob(body)).toBeUndefined());

  it('has one key across retries, which sorts merge first within an upload', () => {
    expect(jobKey({ ...work, attempt: 3 } as UploadJob)).toBe(jobKey(work));
    const merge = { ...plan, kind: 'merge' } as const;
    const later = { ...plan, upload: upload.replace('019b', '019c') };
    const sorted = [later, work, { ...work, piece: 10 }, plan, merge].map(jobKey).sort();
    expect(sorted).toEqual([merge, plan, work, { ...work, piece: 10 }, later].map(jobKey));
  });

  it('has the members of its kind', () => {
    expect(readsOf(plan, 0)).toEqual(['upload']);
    expect(readsOf(work, 5)).toEqual(['pieces/3']);
    expect(readsOf({ ...plan, kind: 'merge' }, 2)).toEqual(['plan', 'results/0', 'results/1']);
    expect(writesOf(work)).toEqual(['results/3', 'refusal']);
    expect(writesOf({ ...plan, kind: 'merge' })).toEqual(['transcript', 'refusal']);
    expect(writesOf(plan)).toEqual(expect.arrayContaining(['plan', 'transcript', 'refusal', 'pieces/0', 'pieces/89']));
  });

  it('goes to the queue of its zone', () => {
    expect(deadQueue('jobs', 'eu')).toBe('jobs-eu-dlq');
    const name = jobQueue('jobs', 'eu', 'acme/speech:large v2.1 with a long name');
    expect(name).toMatch(/^jobs-eu-acme_speech_large_v2_1_w-[0-9a-f]{10}$/);
    expect(jobQueue('jobs', 'eu', 'acme/speech:large v2.1 with another')).not.toBe(name);
    expect(jobQueue('jobs', 'eu', 'dlq')).not.toBe(deadQueue('jobs', 'eu'));
  });
});

describe('metadata of outcomes', () => {
  it.each([
    { pieces: 3, seconds: 1_800.5, bytes: 10, agent: 'a-0', warnings: ['lossy', 'rate_low'] },
    { refusal: { reason: 'audio_unsupported' as const } },
    { refusal: { reason: 'audio_too_long' as const, params: { limit: 60 } } },
    {},
  ])('are read as they were written: %j', (facts) => {
    expect(readOutcome(outcomeMetadataOf(facts))).toEqual({ ...facts });
  });

  it('are headers without non-ASCII text', () => {
    const facts = { refusal: { reason: 'audio_invalid' as const, params: { rule: 'ü' } } };
    expect(outcomeMetadataOf(facts)).toEqual({ reason: 'audio_invalid' });
  });

  it.each([
    { pieces: '91' },
    { pieces: 'x' },
    { seconds: '-1' },
    { reason: 'because' },
    { warnings: 'Some text that was said' },
  ])('%j is of no agent of ours', (metadata) => expect(readOutcome(metadata as never)).toBeUndefined());
});
