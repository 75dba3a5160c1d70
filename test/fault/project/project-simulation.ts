// One simulated run of text projects: like that of uploads, with clients that edit segments, delete, and
// retry.

import { createProject } from '../../../functions/jobs/create-project.ts';
import { editSegment } from '../../../functions/jobs/edit-segment.ts';
import { deleteProject, getProject, rerunProject } from '../../../functions/jobs/projects.ts';
import type { UploadRecord } from '../../../functions/jobs/record.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import type { NewProject } from '../../../shared/jobs/project-contract.ts';
import { projectIdOf } from '../../../shared/jobs/project-id.ts';
import { isOver } from '../../../shared/jobs/state.ts';
import { call, Outage, rough } from '../../fake/storage.ts';
import { admitHead } from '../batch/sealed-head.ts';
import { KEY, Simulation, steady } from '../batch/simulation.ts';
import type { ModelText } from './speech-model.ts';

const HOUR = 3_600_000;

export interface MadeProject {
  readonly asked: NewProject;
  readonly texts: readonly ModelText[];
  /** By document: the sender knows that its text is stored. */
  readonly sent: boolean[];
  /** Acknowledged edits: document, segment, edition, text. */
  readonly edits: { document: number; segment: number; edition: number; text: string }[];
  deleted: boolean;
}

export const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

export class ProjectSimulation extends Simulation {
  readonly made: MadeProject[] = [];
  /** Number of outcomes by project and run. */
  readonly projectEnds = new Map<string, number>();

  /** Checks that a project ends once in each run; its documents continue only after an edit. */
  protected override alsoWatch(key: string, before: unknown, after: unknown): void {
    if (!/^[px]!/.test(key) || !after) return;
    const [from, to] = [before as UploadRecord | undefined, after as UploadRecord];
    const fail = (why: string) => this.world.bugs.push(new Error(`${why}: ${from?.state.status} → ${to.state.status}`));
    if (from && to.state.seq < from.state.seq) fail('the sequence went back');
    if (from && (to.state.edition ?? 0) < (from.state.edition ?? 0)) fail('an edition went back');
    const reopened = from && isOver(from.state.status) && from.state.status !== to.state.status;
    if (key.startsWith('x!')) {
      if (reopened && to.state.edition === from.state.edition) fail('an end was changed');
      if (from?.state.status === 'cancelled' && to.state.status !== 'cancelled') fail('a deleted document came back');
      return;
    }
    const again = from && isOver(from.state.status) && to.state.run === from.state.run;
    if (again && reopened) fail('an end was changed');
    if (isOver(to.state.status) && !again) {
      const run = `${to.id}.${to.state.run}`;
      this.projectEnds.set(run, (this.projectEnds.get(run) ?? 0) + 1);
    }
  }

  projectClient(number: number): void {
    const { world } = this;
    world.go(async () => {
      await world.sleep(world.between(0, HOUR / 4));
      const asked = this.#asked(number);
      const texts = asked.project.documents.map((_, document): ModelText => {
        const blocks = Array.from({ length: world.between(1, 4) }, () => world.between(1, 4));
        return { blocks: world.random() < 0.03 ? [] : blocks, name: `${number}.${document}` };
      });
      const grant = await this.insist(async () => {
        const granted = await createProject(this.office(), asked);
        return granted.ok ? granted.value : undefined;
      });
      // A client that repeated its request does not wait for the first answer.
      if (!grant) return;
      const made: MadeProject = { asked, texts, sent: [], edits: [], deleted: false };
      this.made.push(made);
      for (const [document, { id, url }] of grant.documents.entries()) {
        if (world.random() < 0.03) continue;
        const content = concat(admitHead(asked.tenant, id, KEY.kid), encode(texts[document]));
        await this.insist(() => call(world, steady(), rough, () => this.blobs.put(url, content)));
        made.sent[document] = true;
      }
      for (let edits = world.between(0, 4); edits > 0; edits -= 1) {
        await world.sleep(world.between(0, HOUR));
        await this.#edit(made);
      }
      if (world.random() < 0.2) await this.#later(() => rerunProject(this.office(), asked));
      if (world.random() < 0.2) {
        await world.sleep(world.between(0, 2 * HOUR));
        const deleted = await deleteProject(this.office(), asked).catch(() => undefined);
        if (deleted?.ok) made.deleted = true;
      }
    });
  }

  async #later(work: () => Promise<unknown>): Promise<void> {
    await this.world.sleep(this.world.between(0, 2 * HOUR));
    await work().catch(() => {});
  }

  #asked(number: number): NewProject {
    const { world } = this;
    const random = Uint8Array.from({ length: 10 }, () => world.between(0, 256));
    return {
      id: projectIdOf(eventId(world.now, random)),
      tenant: world.pick(['acme', 'zebra']),
      class: 'batch',
      model: 'v',
      zone: world.pick(['eu', 'us']),
      ...(world.random() < 0.5 && { callback: 'http://receiver.test/' }),
      project: {
        title: `project ${number}`,
        gaps: { segment: 0, block: 0 },
        light: world.random() < 0.5,
        documents: Array.from({ length: world.between(1, 4) }, () => ({ contentType: 'application/json' as const })),
      },
    };
  }

  /**
   * Edits as the edge does: read, seal for the next edition, send; without an answer, send the same again.
   */
  async #edit(made: MadeProject): Promise<void> {
    const { world } = this;
    const { asked } = made;
    const seen = await this.insist(() => getProject(this.office(), asked));
    const about = seen.ok ? world.pick(seen.value.documents) : undefined;
    if (!about || about.segments === 0) return;
    const { index: document, edition: now } = about;
    const segment = world.between(0, about.segments);
    const edition = now + 1;
    const text = `${asked.project.title}.${document}.${segment}.${edition}.${world.between(0, 1_000)}`;
    const head = admitHead(asked.tenant, about.id, KEY.kid, `1/pieces/${segment}-${edition}`);
    const file = Buffer.from(concat(head, encode({ text }))).toString('base64');
    const place = { document, segment };
    const edited = await this.insist(() => editSegment(this.office(), asked, place, { edition, file }));
    if (edited.ok) made.edits.push({ document, segment, edition, text });
  }

  async insist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof Outage) && !/faster too often/.test(String(error))) throw error;
        await this.world.sleep(this.world.between(100, 10_000));
      }
    }
  }
}

const concat = (...parts: Uint8Array[]): Uint8Array => Uint8Array.from(Buffer.concat(parts));
