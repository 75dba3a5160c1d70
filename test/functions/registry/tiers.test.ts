// Tiers of revisions over the registry: the timer's moves with their events, and the answers to operators.
import { createHash } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import { addressFiles, hashUpload, planFiles } from '../../../functions/registry/model-files.ts';
import { moveAlias } from '../../../functions/registry/move-alias.ts';
import { onModelTiers, onStoreTiers } from '../../../functions/registry/on-tiers.ts';
import { registerRevision } from '../../../functions/registry/register-revision.ts';
import { moveTiers } from '../../../functions/registry/tiers.ts';
import { needsOf } from '../../../functions/tier/facts.ts';
import type { EventDraft } from '../../../shared/audit/event.ts';
import { auditEvent } from '../../../shared/audit/event.ts';
import { newRegistry, type Registry } from '../../../shared/registry/registry.ts';
import { modelTiers, storeTiers } from '../../../shared/registry/tiers.ts';
import { ok } from '../../../shared/result.ts';
import { ModelBlobs } from '../../fake/model-blobs.ts';
import { MemoryRows } from '../../fake/rows.ts';
import { makeP256, makeRevision, type Person, signerOf } from '../../shared/registry/people.ts';
import { makeCallers } from '../callers.ts';
import { askModels } from './ask-models.ts';

const MODEL = 'reference-en';
const DAY = 86_400_000;
const callers = await makeCallers();
const author: Person = { name: 'author', key: await makeP256() };
/** By the digests of their revisions, as the rows of the table. */
const contents = ['second network', 'first network'];
/** Bytes of each as storage reports them: smaller files save less than a move costs. */
const BYTES = 2_000_000_000;
/** Credentials of the edge are of today, 400 days later. */
const begin = Date.now() - 400 * DAY;

let days: number;
let blobs: ModelBlobs;
let context: ModelContext;
let events: (EventDraft & { readonly id?: string })[];
let revisions: string[];
let isUnderLegalHold: boolean;

beforeEach(async () => {
  [days, events, isUnderLegalHold] = [0, [], false];
  blobs = new ModelBlobs();
  blobs.now = () => begin + days * DAY;
  const report = async (_: string, draft: EventDraft, id?: string) => {
    events.push({ ...draft, ...(id !== undefined && { id }) });
    return ok({ id: id ?? '', producer: 'functions', epoch: 'e', pseq: events.length });
  };
  context = {
    ...{ rows: new MemoryRows(), blobs, signers: [signerOf(author)], zone: 'eu', audit: { report }, edge: undefined },
    ...{ settings: callers.settings, log: () => {}, now: () => begin + days * DAY },
    isUnderLegalHold: async () => isUnderLegalHold,
  };
  revisions = await Promise.all(contents.map(push));
  events = [];
});

/** Registers a revision of one file and stores the file. */
async function push(content: string): Promise<string> {
  const { revision, bundle } = await makeRevision(content, author);
  expect(await registerRevision(context, MODEL, { bundle, description: {} })).toMatchObject({ ok: true });
  const digest = digestOf(content);
  const file = { name: 'model.onnx', digest, bytes: content.length };
  const planned = await planFiles(context, MODEL, revision, [file]);
  if (!planned.ok) throw new Error(planned.refusal.reason);
  blobs.write(planned.value.files[0]?.url ?? '', content);
  await hashUpload(context, digest);
  blobs.place(digest, { tier: 'hot', since: begin }, BYTES);
  return revision;
}

const digestOf = (content: string) => createHash('sha256').update(content).digest('hex');
const tierOf = async (at: number) => (await blobs.find('models', digestOf(contents[at] as string)))?.placed?.tier;
const ask = async (handler: typeof onModelTiers) => (await askModels(callers, context, handler, {})).body;
const alias = (at: number) => moveAlias(context, MODEL, { alias: 'pinned', revision: revisions[at] as string });

it('A11 C8 archives what is idle and no alias names, with an event for each move', async () => {
  await alias(0);
  events = [];
  days = 400;
  expect(await moveTiers(context)).toBe('done');
  expect([await tierOf(0), await tierOf(1)]).toEqual(['hot', 'archive']);
  const moved = { type: 'model.tier', model: MODEL, revision: revisions[1], from: 'hot', to: 'archive' };
  expect(events).toMatchObject([{ ...moved, rule: 'cheaper' }]);
  const [{ id, ...draft }] = events as [(typeof events)[0]];
  expect(auditEvent.safeParse({ ...draft, v: 1, id, at: begin, producer: 'functions' })).toMatchObject({
    success: true,
  });
  expect(await moveTiers(context)).toBe('idle');
});

it('A11 archives nothing while a legal hold stands', async () => {
  [days, isUnderLegalHold] = [400, true];
  await moveTiers(context);
  expect([await tierOf(0), await tierOf(1)]).toEqual(['cold', 'cold']);
});

it('A11 an alias waits for an archived revision, which its request brings back', async () => {
  days = 400;
  await moveTiers(context);
  days = 401;
  expect(await alias(0)).toMatchObject({ refusal: { reason: 'model_archived' } });
  events = [];
  await moveTiers(context);
  expect(events).toMatchObject([{ from: 'archive', to: 'hot', rule: 'needed', priority: 'high' }]);
  expect(await alias(0)).toMatchObject({ ok: true });
  expect(await tierOf(1)).toBe('archive');
});

it('A11 an agent that asks for an archived file brings it back', async () => {
  days = 400;
  await moveTiers(context);
  days = 401;
  const revision = revisions[0] as string;
  expect(await addressFiles(context, MODEL, revision)).toMatchObject({
    value: { files: [{ expected: expect.any(Number) }] },
  });
  await moveTiers(context);
  expect(await addressFiles(context, MODEL, revision)).toMatchObject({
    value: { files: [{ url: expect.any(String) }] },
  });
});

it('C8 shows operators each revision with the numbers of its decision', async () => {
  days = 400;
  const seen = modelTiers.parse(await ask(onModelTiers));
  expect(seen.revisions).toMatchObject(
    revisions.map((revision) => ({
      ...{ revision, complete: true, needs: [], uses: 0 },
      parts: [{ tier: 'hot', files: 1, bytes: BYTES, floor: 'archive', move: { to: 'archive', rule: 'cheaper' } }],
    })),
  );
  const [part] = seen.revisions[0]?.parts ?? [];
  expect(part?.idleDays).toBeCloseTo(400, 0);
  expect(part?.costs.archive).toBeLessThan(part?.costs.hot ?? 0);
});

it('C8 shows operators what each tier holds and costs', async () => {
  await alias(0);
  days = 400;
  await moveTiers(context);
  const { tiers } = storeTiers.parse(await ask(onStoreTiers));
  expect(tiers.map(({ tier, revisions: count, bytes }) => [tier, count, bytes])).toEqual([
    ['hot', 1, BYTES],
    ['cool', 0, 0],
    ['cold', 0, 0],
    ['archive', 1, BYTES],
  ]);
  expect(tiers[0]?.monthly).toBeCloseTo(0.018 * 2, 9);
});

it('C8 refuses callers without the scope of operators', async () => {
  days = 400;
  expect(await askModels(callers, context, onStoreTiers, { operate: false })).toMatchObject({ status: 403 });
});

it('A11 an alias, its roll-back target, a trial and a hold need a revision', () => {
  const row = (stage: 'full' | 'canary' | 'retired') => ({
    ...{ author: 'author', registered: 0, since: 0 },
    standing: stage === 'canary' ? ({ stage, share: 0.1 } as const) : { stage },
  });
  const known: Registry = {
    ...newRegistry(MODEL),
    revisions: { new: row('full'), old: row('full'), trial: row('canary'), gone: row('retired') },
    aliases: {
      stable: { revision: 'new', since: 0, before: 'old' },
      other: { revision: 'new', since: 0, before: 'gone' },
    },
  };
  const needs = (revision: string, held = false) => needsOf(known, revision, held);
  expect(['new', 'old', 'trial', 'gone'].map((one) => needs(one))).toEqual([['alias'], ['rollback'], ['trial'], []]);
  expect(needs('gone', true)).toEqual(['hold']);
});
