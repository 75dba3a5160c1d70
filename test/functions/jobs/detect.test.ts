import { beforeEach, describe, expect, it } from 'vitest';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { UPLOAD_WINDOW } from '../../../functions/jobs/limits.ts';
import { openTakenJob } from '../../../functions/jobs/open-job.ts';
import { rerunUpload } from '../../../functions/jobs/uploads.ts';
import type { UploadJob } from '../../../shared/jobs/job.ts';
import type { NewUpload } from '../../../shared/jobs/upload-contract.ts';
import { Quiet } from './quiet.ts';

let quiet: Quiet;
let office: JobContext;
beforeEach(() => {
  quiet = new Quiet();
  office = quiet.instant();
});

const open = (job: UploadJob) => openTakenJob(office, job, { agent: 'a', pool: 'p', zone: 'eu' });

describe('R3 an upload for a family', () => {
  const family = { model: 'family', members: { en: 'family-en', es: 'family-es' } };

  it('moves to the queue of the model that serves its language', async () => {
    const upload = await quiet.uploaded(family);
    const [detection] = quiet.jobs() as [UploadJob];
    expect(detection).toMatchObject({ kind: 'detect', model: 'family' });
    await quiet.outcome(upload, 'language', { language: 'es', confidence: 0.97 });
    await quiet.outcome(upload, 'language', { language: 'es', confidence: 0.97 });
    expect(quiet.jobs().slice(1)).toMatchObject([{ kind: 'plan', model: 'family-es', run: 1 }]);
    expect(await quiet.row(upload)).toMatchObject({ model: 'family-es', language: 'es', languageConfidence: 0.97 });
    expect(await open(detection)).toMatchObject({ refusal: { reason: 'upload_status_wrong' } });
    const planned = await open(quiet.jobs()[1] as UploadJob);
    expect(planned.ok && planned.value.upload).toMatchObject({ language: 'es', languageConfidence: 0.97 });
    await quiet.outcome(upload, 'transcript', { pieces: 1, seconds: 2 });
    expect([...quiet.ledger.booked.values()]).toMatchObject([{ model: 'family-es', language: 'es', seconds: 2 }]);
  });

  it('frees a slot in the queue of its family', async () => {
    const uploads: NewUpload[] = [];
    for (let file = 0; file <= UPLOAD_WINDOW; file += 1) uploads.push(await quiet.uploaded(family));
    const detections = () => quiet.jobs().filter(({ kind }) => kind === 'detect');
    expect(detections()).toHaveLength(UPLOAD_WINDOW);
    await quiet.outcome(uploads[0] as NewUpload, 'language', { language: 'en', confidence: 0.9 });
    expect(detections()).toHaveLength(UPLOAD_WINDOW + 1);
  });

  it('without speech goes to any of its models', async () => {
    const upload = await quiet.uploaded(family);
    await quiet.outcome(upload, 'language', { language: 'zxx' });
    const [, plan] = quiet.jobs() as [UploadJob, UploadJob];
    expect(plan).toMatchObject({ kind: 'plan', model: 'family-en' });
    const opened = await open(plan);
    expect(opened.ok && opened.value.upload.language).toBe('zxx');
    expect(await quiet.row(upload)).not.toHaveProperty('language');
  });

  it('outside the list of its request is refused', async () => {
    const upload = await quiet.uploaded({ ...family, languages: ['en', 'es'] });
    await quiet.outcome(upload, 'language', { language: 'zh', confidence: 0.97 });
    const rule = 'the speech is in "zh", and the request is for en, es';
    expect(await quiet.row(upload)).toMatchObject({ refusal: { reason: 'language_needed', params: { rule } } });
  });

  it('without a model in its zone is refused, and detected again by a rerun', async () => {
    const upload = await quiet.uploaded({ ...family, keepDays: 1 });
    await quiet.outcome(upload, 'language', { language: 'zh', confidence: 0.97 });
    expect(await quiet.row(upload)).toMatchObject({
      ...{ status: 'refused', model: 'family' },
      refusal: { reason: 'language_unknown', params: { model: 'family', language: 'zh', languages: 'en, es' } },
    });
    expect((await rerunUpload(office, upload)).ok).toBe(true);
    expect(quiet.jobs().at(-1)).toMatchObject({ kind: 'detect', model: 'family', run: 2 });
  });
});
