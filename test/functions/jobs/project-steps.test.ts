// Steps of text projects on a model of the stores on which nothing fails, with a clock that the test moves.
import { beforeEach, describe, expect, it } from 'vitest';
import { admitFile } from '../../../functions/jobs/admit.ts';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { createProject } from '../../../functions/jobs/create-project.ts';
import { JOB_SILENT_MS, PROJECT_LIGHT_MS } from '../../../functions/jobs/decide-redrive.ts';
import { deliver } from '../../../functions/jobs/deliver.ts';
import { editSegment } from '../../../functions/jobs/edit-segment.ts';
import { onStalled } from '../../../functions/jobs/on-timer.ts';
import { openTakenJob } from '../../../functions/jobs/open-job.ts';
import type { Post } from '../../../functions/jobs/post.ts';
import {
  deleteProject,
  getProject,
  inspectProject,
  listProjects,
  openDocument,
  rerunProject,
} from '../../../functions/jobs/projects.ts';
import { MINUTE, UPLOAD_GRANT_S } from '../../../functions/jobs/record.ts';
import { takeOutcome } from '../../../functions/jobs/take-outcome.ts';
import { listUploads } from '../../../functions/jobs/uploads.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { readJob, type UploadJob } from '../../../shared/jobs/job.ts';
import { PROJECT_DOCUMENTS_MAX, PROJECT_SEGMENTS_MAX } from '../../../shared/jobs/limits.ts';
import { type OutcomeFacts, outcomeMetadataOf } from '../../../shared/jobs/outcome.ts';
import { type OutcomeName, outcomeBlob } from '../../../shared/jobs/paths.ts';
import type { NewProject, ProjectRow } from '../../../shared/jobs/project-contract.ts';
import { PROJECT_EDIT_BYTES } from '../../../shared/jobs/project-contract.ts';
import { documentId, projectIdOf } from '../../../shared/jobs/project-id.ts';
import { admitHead } from '../../fault/batch/sealed-head.ts';
import { KEY, Simulation } from '../../fault/batch/simulation.ts';

class Quiet extends Simulation {
  numbers = 0;
  constructor() {
    super(1);
    this.world.calm = true;
    this.world.turn = async () => {};
  }

  asked(documents = 1, more: Partial<NewProject['project']> = {}): NewProject {
    this.numbers += 1;
    return {
      id: projectIdOf(eventId(this.world.now + this.numbers, new Uint8Array(10))),
      tenant: 'acme',
      class: 'batch',
      model: 'v',
      zone: 'eu',
      project: {
        gaps: { segment: 0, block: 0 },
        light: false,
        documents: Array.from({ length: documents }, () => ({ contentType: 'text/plain' as const })),
        ...more,
      },
    };
  }

  jobs(): UploadJob[] {
    return (this.queues.get('eu')?.messages ?? []).flatMap(({ body }) => readJob(body) ?? []);
  }
}

let quiet: Quiet;
let office: JobContext;
beforeEach(() => {
  quiet = new Quiet();
  office = quiet.office();
});

async function begun(asked: NewProject): Promise<NewProject> {
  const made = await createProject(office, asked);
  if (!made.ok) throw new Error(made.refusal.reason);
  for (const { id, url } of made.value.documents) {
    quiet.blobs.put(url, admitHead('acme', id, KEY.kid));
    await admitFile(office, `acme/${id}`);
  }
  return asked;
}

async function outcome(project: NewProject, document: number, name: OutcomeName, facts: OutcomeFacts = {}) {
  const blob = outcomeBlob({ tenant: 'acme', id: documentId(project.id, document), run: 1, name });
  quiet.blobs.put(`mem:create:outcomes/${blob}`, new Uint8Array(3), outcomeMetadataOf(facts));
  await takeOutcome(office, blob);
}

async function spoken(project: NewProject, document = 0, blocks = [2, 1]): Promise<void> {
  const pieces = blocks.reduce((sum, one) => sum + one);
  for (let piece = 0; piece < pieces; piece += 1) await outcome(project, document, `pieces/${piece}`);
  await outcome(project, document, 'plan', { pieces, blocks });
  for (let piece = 0; piece < pieces; piece += 1) await outcome(project, document, `results/${piece}`);
  await outcome(project, document, 'transcript', { seconds: 3 });
}

async function row(project: NewProject): Promise<ProjectRow> {
  const seen = await getProject(office, project);
  if (!seen.ok) throw new Error(seen.refusal.reason);
  return seen.value;
}

/** A sealed segment, as far as functions can see. */
function segmentFile(project: NewProject, name: string, body = '', document = 0): string {
  const head = admitHead('acme', documentId(project.id, document), KEY.kid, name);
  return Buffer.concat([head, Buffer.from(body)]).toString('base64');
}

const edit = (project: NewProject, segment: number, edition: number, body = '', document = 0) =>
  editSegment(
    office,
    project,
    { document, segment },
    { edition, file: segmentFile(project, `1/pieces/${segment}-${edition}`, body, document) },
  );

const reasonOf = (result: { ok: boolean; refusal?: { reason: string } }) => (result.ok ? 'ok' : result.refusal?.reason);
const open = (job: UploadJob) => openTakenJob(office, job, { agent: 'a', pool: 'p', zone: 'eu' });

describe('T3 T4 a project', () => {
  it('completes by segments and documents, and ends once with all', async () => {
    const project = await begun(quiet.asked(2));
    await outcome(project, 0, 'plan', { pieces: 3, blocks: [2, 1] });
    await outcome(project, 0, 'results/1');
    expect((await row(project)).documents[0]).toMatchObject({
      status: 'working',
      blocks: [
        { segments: 2, done: 1 },
        { segments: 1, done: 0 },
      ],
    });
    for (const name of ['results/0', 'results/2'] as const) await outcome(project, 0, name);
    expect(quiet.jobs().at(-1)).toMatchObject({ kind: 'merge', upload: documentId(project.id, 0) });
    await outcome(project, 0, 'transcript', { seconds: 2 });
    expect((await row(project)).status).toBe('working');
    await spoken(project, 1);
    expect(await row(project)).toMatchObject({ status: 'done', run: 1, seconds: 5 });
  });

  it('T4 shows waiting for a pool, and nothing while an agent works', async () => {
    const project = await begun(quiet.asked(2));
    const shown = async () => {
      const answer = await inspectProject(office, project);
      if (!answer.ok) throw new Error(answer.refusal.reason);
      return [answer.value.waiting?.for, ...answer.value.documents.map(({ waiting }) => waiting?.for)];
    };
    expect(await shown()).toEqual(['pool', 'pool', 'pool']);
    expect((await open(quiet.jobs()[0] as UploadJob)).ok).toBe(true);
    expect((await shown()).filter((word) => word === 'pool')).toHaveLength(1);
    expect((await shown())[0]).toBeUndefined();
  });

  it('its documents are no uploads, and its rows begin together or not at all', async () => {
    const project = await begun(quiet.asked(PROJECT_DOCUMENTS_MAX));
    const query = { tenant: 'acme', after: undefined, limit: 10 };
    expect((await listUploads(office, query)).uploads).toEqual([]);
    expect((await listProjects(office, query)).projects.map(({ id }) => id)).toEqual([project.id]);
    // Asked twice, when the first answer was lost, it is the same project.
    const fresh = quiet.asked(2);
    expect(reasonOf(await createProject(office, fresh))).toBe('ok');
    expect(reasonOf(await createProject(office, fresh))).toBe('ok');
    const other = { ...fresh, model: 'other' };
    expect(reasonOf(await createProject(office, other))).toBe('project_exists');
  });

  it('a thousand segments wait in a window, and all of them come', async () => {
    const project = await begun(quiet.asked());
    const pieces = PROJECT_SEGMENTS_MAX;
    await outcome(project, 0, 'plan', { pieces, blocks: [pieces] });
    for (let piece = 0; piece < pieces; piece += 1) {
      if (piece % 100 === 0) expect(quiet.jobs().some((job) => job.piece === piece)).toBe(true);
      await outcome(project, 0, `results/${piece}`);
    }
    expect(quiet.jobs().at(-1)?.kind).toBe('merge');
  });

  it('T5 a light job is offered to every pool after two minutes', async () => {
    await begun(quiet.asked(1, { light: true }));
    expect(quiet.jobs()).toMatchObject([{ kind: 'plan', light: true }]);
    quiet.world.now += PROJECT_LIGHT_MS;
    await onStalled(office);
    const [, again] = quiet.jobs();
    expect(again).toMatchObject({ kind: 'plan', attempt: 2 });
    expect(again).not.toHaveProperty('light');
    // One that was taken is left with its agent.
    expect((await open(again as UploadJob)).ok).toBe(true);
    quiet.world.now += JOB_SILENT_MS - 1;
    await onStalled(office);
    expect(quiet.jobs()).toHaveLength(2);
  });

  it('is refused with its document; finished speech stays for a rerun', async () => {
    const project = await begun(quiet.asked(2));
    await spoken(project, 1);
    await outcome(project, 0, 'plan', { pieces: 2, blocks: [2] });
    await outcome(project, 0, 'results/0');
    await outcome(project, 0, 'refusal', { refusal: { reason: 'voice_unknown' } });
    expect(await row(project)).toMatchObject({ status: 'refused', refusal: { reason: 'voice_unknown' } });
    expect(reasonOf(await rerunProject(office, project))).toBe('ok');
    expect(quiet.jobs().at(-1)).toMatchObject({ kind: 'work', piece: 1 });
    expect((await row(project)).documents.map(({ status }) => status)).toEqual(['working', 'done']);
    // Outcomes of the first try no longer count.
    await outcome(project, 0, 'refusal', { refusal: { reason: 'voice_unknown' } });
    await outcome(project, 0, 'results/1');
    await outcome(project, 0, 'transcript-1', { seconds: 1 });
    expect(await row(project)).toMatchObject({ status: 'done', run: 2 });
    expect(reasonOf(await rerunProject(office, project))).toBe('project_status_wrong');
  });

  it('R2 books seconds of a document, and the mean segment for a change', async () => {
    const project = await begun(quiet.asked());
    await spoken(project);
    await edit(project, 0, 1);
    await outcome(project, 0, 'results/0-1');
    await outcome(project, 0, 'transcript-1', { seconds: 6 });
    const upload = documentId(project.id, 0);
    const booked = [...quiet.ledger.booked.values()];
    expect(booked).toMatchObject([
      { upload, run: 1, status: 200, seconds: 3, model: 'v', class: 'batch' },
      { upload, run: 1, edition: 1, status: 200, seconds: 2 },
    ]);
    expect(quiet.table.scan('acme', 'b!', 'b!~', 9)).toEqual([]);
  });

  it('T4 each end is notified once, signed, without any text', async () => {
    const told: { id: string; body: string }[] = [];
    const post: Post = async (_, headers, body) => {
      told.push({ id: headers['webhook-id'] ?? '', body });
      return { status: 200 };
    };
    const project = await begun({ ...quiet.asked(1, { title: 'Title' }), callback: 'http://receiver.test/' });
    await spoken(project);
    const place = { tenant: 'acme', id: project.id };
    await deliver(office, post, { ...place, run: 1, tries: 0 });
    await deliver(office, post, { ...place, run: 1, tries: 0 });
    await edit(project, 0, 1);
    await outcome(project, 0, 'results/0-1');
    await outcome(project, 0, 'transcript-1', { seconds: 4 });
    await deliver(office, post, { ...place, run: 2, tries: 0 });
    expect(told.map(({ id }) => id)).toEqual([`project_${project.id}_1`, `project_${project.id}_2`]);
    expect(told.map(({ body }) => JSON.parse(body))).toMatchObject([
      { type: 'project.done', data: { id: project.id, run: 1, seconds: 3 } },
      { type: 'project.done', data: { run: 2, seconds: 4 } },
    ]);
    expect(told.some(({ body }) => body.includes('Title'))).toBe(false);
    expect((await row(project)).notice).toBe('delivered');
  });

  it('a document that never came is refused after its deadline', async () => {
    const made = await createProject(office, quiet.asked());
    if (!made.ok) throw new Error(made.refusal.reason);
    quiet.world.now += (UPLOAD_GRANT_S + 3_600) * 1_000;
    for (let look = 0; look < 3; look += 1) {
      await onStalled(office);
      quiet.world.now += 6 * 60 * MINUTE;
    }
    const seen = await getProject(office, made.value.project);
    expect(seen).toMatchObject({ ok: true, value: { status: 'refused', refusal: { reason: 'upload_late' } } });
  });
});

describe('T3 a change of one segment', () => {
  it('requests that segment, then the whole, and ends the project again', async () => {
    const project = await begun(quiet.asked());
    await spoken(project);
    const before = quiet.jobs().length;
    expect(reasonOf(await edit(project, 1, 1))).toBe('ok');
    expect(quiet.jobs().slice(before)).toMatchObject([{ kind: 'work', piece: 1, edition: 1 }]);
    const work = await open(quiet.jobs()[before] as UploadJob);
    expect(work.ok && [Object.keys(work.value.read), Object.keys(work.value.write)]).toEqual([
      ['pieces/1-1'],
      ['results/1-1', 'refusal'],
    ]);
    expect((await row(project)).status).toBe('working');
    await outcome(project, 0, 'results/1-1');
    const merge = await open(quiet.jobs().at(-1) as UploadJob);
    expect(merge.ok && Object.keys(merge.value.read)).toEqual(['plan', 'results/0', 'results/1-1', 'results/2']);
    await outcome(project, 0, 'transcript-1', { seconds: 4 });
    expect(await row(project)).toMatchObject({ status: 'done', run: 2, seconds: 4 });
    const names = [...quiet.blobs.blobs.keys()].map((name) => name.split('/1/')[1]).sort();
    expect(names).toEqual(
      ['pieces/0', 'pieces/1-1', 'pieces/2', 'plan', 'results/0', 'results/1-1', 'results/2', 'transcript-1'].sort(),
    );
  });

  it('while the document is spoken: results of the old text do not count', async () => {
    const project = await begun(quiet.asked());
    await outcome(project, 0, 'plan', { pieces: 2, blocks: [2] });
    await outcome(project, 0, 'results/0');
    await outcome(project, 0, 'results/1');
    expect(quiet.jobs().at(-1)?.kind).toBe('merge');
    const merge = quiet.jobs().at(-1) as UploadJob;
    expect(reasonOf(await edit(project, 0, 1))).toBe('ok');
    expect(reasonOf(await open(merge))).toBe('upload_status_wrong');
    await outcome(project, 0, 'transcript', { seconds: 9 });
    expect((await row(project)).documents[0]?.status).toBe('working');
    await outcome(project, 0, 'results/0-1');
    await outcome(project, 0, 'transcript-1', { seconds: 8 });
    expect(await row(project)).toMatchObject({ status: 'done', run: 1, seconds: 8 });
  });

  it('one of two concurrent edits gets edition_passed', async () => {
    const project = await begun(quiet.asked());
    await spoken(project);
    expect(
      await Promise.all([edit(project, 0, 1, 'a'), edit(project, 2, 1, 'b')]).then((all) => all.map(reasonOf).sort()),
    ).toEqual(['edition_passed', 'ok']);
    expect(await edit(project, 2, 1, 'b')).toMatchObject({ refusal: { params: { edition: 2 } } });
    expect(reasonOf(await edit(project, 2, 2, 'b'))).toBe('ok');
  });

  it('a repeated edit is the same edit', async () => {
    const project = await begun(quiet.asked());
    await spoken(project);
    expect(reasonOf(await edit(project, 0, 1, 'same'))).toBe('ok');
    expect(reasonOf(await edit(project, 0, 1, 'same'))).toBe('ok');
    expect((await row(project)).documents[0]?.edition).toBe(1);
  });

  it('left between file and row counts at the next edit', async () => {
    const project = await begun(quiet.asked());
    await spoken(project);
    const id = documentId(project.id, 0);
    quiet.blobs.put(`mem:create:outcomes/acme/${id}/1/pieces/0-1`, Buffer.from('left'));
    expect(reasonOf(await edit(project, 0, 1, 'mine'))).toBe('edition_passed');
    expect((await row(project)).documents[0]).toMatchObject({ edition: 1, segmentsDone: 2 });
    expect(reasonOf(await edit(project, 0, 2, 'mine'))).toBe('ok');
  });

  it('forged, of what is not there, or too late, is refused', async () => {
    const project = await begun(quiet.asked());
    expect(reasonOf(await edit(project, 0, 1))).toBe('project_status_wrong');
    await spoken(project);
    const put = (segment: number, edition: number, file: string, document = 0) =>
      editSegment(office, project, { document, segment }, { edition, file }).then(reasonOf);
    expect(await put(0, 1, segmentFile(project, '1/pieces/1-1'))).toBe('envelope_invalid');
    expect(await put(0, 1, segmentFile(project, 'upload'))).toBe('envelope_invalid');
    expect(await put(0, 1, Buffer.from('no head').toString('base64'))).toBe('envelope_invalid');
    expect(await put(0, 1, segmentFile(project, '1/pieces/0-1', '', 1))).toBe('envelope_invalid');
    const other = Buffer.from(admitHead('acme', documentId(project.id, 0), 'B'.repeat(43), '1/pieces/0-1'));
    expect(await put(0, 1, other.toString('base64'))).toBe('envelope_invalid');
    expect(await put(0, 1, segmentFile(project, '1/pieces/0-1', 'x'.repeat(PROJECT_EDIT_BYTES)))).toBe('text_too_long');
    expect(reasonOf(await edit(project, 3, 1))).toBe('segment_unknown');
    expect(reasonOf(await edit(project, 0, 1, '', 1))).toBe('document_unknown');
    expect(reasonOf(await edit(project, 0, 7))).toBe('edition_passed');
    expect((await row(project)).documents[0]?.edition).toBe(0);
    await deleteProject(office, project);
    expect(reasonOf(await edit(project, 0, 1))).toBe('project_status_wrong');
  });
});

describe('T4 a project that is deleted', () => {
  it('C11 keeps no title in any row', async () => {
    const project = await begun(quiet.asked(2, { title: 'Eve' }));
    await deleteProject(office, project);
    expect(JSON.stringify([...quiet.table.of('acme')])).not.toContain('Eve');
    expect(await row(project)).toMatchObject({ status: 'cancelled' });
  });

  it('while it is spoken: nothing of it is left, and nothing comes back', async () => {
    const project = await begun(quiet.asked(2));
    await spoken(project, 0);
    await outcome(project, 1, 'plan', { pieces: 2, blocks: [2] });
    const job = quiet.jobs().at(-1) as UploadJob;
    expect(reasonOf(await deleteProject(office, project))).toBe('ok');
    expect(quiet.blobs.blobs.size).toBe(0);
    expect(reasonOf(await open(job))).toBe('upload_status_wrong');
    await outcome(project, 1, 'results/0');
    await onStalled(office);
    expect(quiet.blobs.blobs.size).toBe(0);
    expect(await row(project)).toMatchObject({ status: 'cancelled', run: 1 });
    expect(reasonOf(await openDocument(office, project, 0))).toBe('speech_gone');
    expect(reasonOf(await rerunProject(office, project))).toBe('project_status_wrong');
    expect(reasonOf(await deleteProject(office, project))).toBe('ok');
    expect((await row(project)).run).toBe(1);
  });
});
