// The lifecycle of revisions over HTTP, from the first signature to full and back, as the edge requests it.

import { HttpRequest } from '@azure/functions';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FUNCTIONS } from '../../../functions/registry/gate.ts';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import * as models from '../../../functions/registry/on-models.ts';
import { publishRelease } from '../../../functions/registry/publish-release.ts';
import type { Change } from '../../../functions/store/rows.ts';
import { modelVersions, readModelVersion, toModelVersion } from '../../../infra/cli/models/azure-ml.ts';
import type { EventDraft } from '../../../shared/audit/event.ts';
import { toBase64 } from '../../../shared/base64.ts';
import { refuse } from '../../../shared/refusal.ts';
import type { Evidence } from '../../../shared/registry/evidence.ts';
import type { Entry } from '../../../shared/registry/registry.ts';
import type { ReleaseMap } from '../../../shared/registry/release.ts';
import type { Bundle } from '../../../shared/registry/signature-bundle.ts';
import { MODEL_SIGNATURES_MAX } from '../../../shared/registry/signature-envelope.ts';
import type { Standing } from '../../../shared/registry/stage.ts';
import { no, ok } from '../../../shared/result.ts';
import { ModelBlobs } from '../../fake/model-blobs.ts';
import { RowsWithFiles } from '../../fake/rows-with-files.ts';
import {
  forCanary,
  forGrey,
  type Move,
  makeP256,
  makeRevision,
  makeSm2,
  type Person,
  quality,
  rates,
  runAt,
  signerOf,
  signMove,
} from '../../shared/registry/people.ts';
import { type Callers, makeCallers } from '../callers.ts';
import { askModels, type Handler } from './ask-models.ts';

let callers: Callers;
let ann: Person;
let bob: Person;
let cleo: Person;
let first: { revision: string; bundle: Bundle };
let second: { revision: string; bundle: Bundle };

beforeAll(async () => {
  callers = await makeCallers();
  ann = { name: 'ann', key: await makeP256() };
  bob = { name: 'bob', key: makeSm2() };
  cleo = { name: 'cleo', key: await makeP256() };
  first = await makeRevision('one', ann);
  second = await makeRevision('two', bob, 'sm3');
});

/** The table, which fails when it is told to. */
class Table extends RowsWithFiles {
  before: ((changes: readonly Change[]) => Promise<void>) | undefined;
  override async commit(partition: string, changes: readonly Change[]): Promise<boolean> {
    const { before } = this;
    this.before = undefined;
    await before?.(changes);
    return super.commit(partition, changes);
  }
}

let rows: Table;
let now: number;
let told: { draft: EventDraft; id: string | undefined }[];
let deaf: boolean;
let released: ReleaseMap[];
let lost: boolean;
let desk: ModelContext;

beforeEach(() => {
  rows = new Table();
  now = Date.now();
  told = [];
  deaf = false;
  released = [];
  lost = false;
  desk = {
    rows,
    blobs: new ModelBlobs(),
    signers: [ann, bob, cleo].map(signerOf),
    zone: 'eu',
    audit: {
      report: async (_zone, draft, id) => {
        if (deaf) return no(refuse('audit_unavailable'));
        told.push({ draft, id });
        return ok({ id: id ?? '', producer: '', epoch: '', pseq: told.length });
      },
    },
    edge: {
      publish: async (map) => {
        if (lost) throw new Error('the edge is away');
        released.push(map);
      },
    },
    settings: callers.settings,
    log: () => {},
    now: () => now,
  };
});

const ask = (handler: Handler, params?: Record<string, string>, body?: unknown, query = {}, operate = true) =>
  askModels(callers, desk, handler, { params, body, query, operate });

const register = (one: { bundle: Bundle }) => ask(models.onRevision, {}, { bundle: one.bundle });
const send = async (asked: Omit<Move, 'at'>, ...people: Person[]) =>
  ask(models.onTransition, {}, { envelope: await signMove({ ...asked, at: now }, ...people) });
const state = (query = {}) => ask(models.onModel, {}, undefined, query);
const setAlias = (revision: string, from?: string, alias = 'stable') =>
  ask(models.onAlias, { alias }, { revision, ...(from !== undefined && { from }) });

const shares = [0.01, 0.05, 0.1, 0.25, 0.5] as const;

/** Through all gates. */
async function promote(revision: string, two: readonly [Person, Person]) {
  const steps: Standing[] = [
    { stage: 'develop-verify' },
    { stage: 'grey' },
    ...shares.map((share) => ({ stage: 'canary' as const, share })),
    { stage: 'full' },
  ];
  for (const [at, from] of steps.slice(0, -1).entries()) {
    const to = steps[at + 1] as Standing;
    const run = rates(runAt(at - 2, 300, at === 6 ? 5 : 0, at === 6 ? 60 : 0));
    const evidence = at === 0 ? forGrey() : at === 1 ? forCanary() : [run];
    now += 1_000;
    expect(await send({ revision, from, to, evidence }, ...two), `${at}`).toMatchObject({
      status: 200,
      body: { missing: 0 },
    });
  }
}

describe('A15: registering', () => {
  it('a revision is what its signed files make, and twice is once', async () => {
    const answered = await register(first);
    expect(answered).toMatchObject({
      status: 201,
      body: { revision: first.revision, author: 'ann', stage: 'develop-verify', aliases: [] },
    });
    expect((await register(first)).body).toEqual(answered.body);
    expect((await state()).body.seq).toBe(1);
  });

  it('A31: export to Azure ML’s shape and import give the same revision', async () => {
    await ask(models.onRevision, {}, { bundle: first.bundle, description: { description: 'the first', task: 'asr' } });
    await register(second);
    await promote(first.revision, [bob, cleo]);
    const versions = await Promise.all(
      [first, second].map(async ({ revision }, at) => {
        const { status, body } = await ask(models.onSeeRevision, { revision });
        expect(status).toBe(200);
        return toModelVersion('fleet', 'reference-en', at + 1, body);
      }),
    );
    expect(versions[0]).toMatchObject({
      id: 'azureml://registries/fleet/models/reference-en/versions/1',
      name: '1',
      properties: { description: 'the first', stage: 'Production', isArchived: false, modelType: 'triton_model' },
    });
    expect(versions[1]?.properties.stage).toBe('Development');
    rows = new Table();
    desk = { ...desk, rows };
    const foreign = { name: '3', properties: { tags: null, properties: { made: 'elsewhere' } } };
    const sent = modelVersions.parse(JSON.parse(JSON.stringify({ value: [...versions, foreign] })));
    const read = sent.value.map(readModelVersion);
    expect(read[2]).toBeUndefined();
    expect(read[0]?.description).toEqual({ description: 'the first', task: 'asr' });
    for (const one of read.slice(0, 2)) expect(await ask(models.onRevision, {}, one)).toMatchObject({ status: 201 });
    const { revisions } = (await state()).body as { revisions: { revision: string; stage: string }[] };
    expect(revisions.map(({ revision }) => revision).sort()).toEqual([first.revision, second.revision].sort());
    expect(revisions.map(({ stage }) => stage)).toEqual(['develop-verify', 'develop-verify']);
    expect(await ask(models.onSeeRevision, { revision: 'none' })).toMatchObject({ status: 404 });
  });

  it('SM2 and SM3 do as well', async () => {
    expect((await register(second)).body).toMatchObject({ revision: second.revision, author: 'bob' });
  });

  it('unknown keys sign nothing, and other callers register nothing', async () => {
    const eve = { name: 'ann', key: await makeP256() };
    expect(await register(await makeRevision('three', eve))).toMatchObject({ status: 422 });
    const tenant = await ask(models.onRevision, {}, { bundle: first.bundle }, {}, false);
    expect(tenant).toMatchObject({ status: 403, body: { error: { reason: 'scope_missing' } } });
    expect(await models.onRevision(undefined)(new HttpRequest({ url: 'http://x/', method: 'POST' }))).toMatchObject({
      status: 503,
      jsonBody: { error: { reason: 'models_closed' } },
    });
    expect((await state()).body.revisions).toEqual([]);
  });
});

describe('C7: five stages', () => {
  beforeEach(async () => void (await register(first)));

  it('develop-verify, grey, five shares of canary, full; then an alias may name it', async () => {
    expect(await setAlias(first.revision)).toMatchObject({ status: 422, body: { error: { reason: 'gate_closed' } } });
    await promote(first.revision, [bob, cleo]);
    expect(await setAlias(first.revision)).toMatchObject({
      status: 200,
      body: { alias: 'stable', revision: first.revision },
    });
    expect((await state()).body).toMatchObject({
      seq: 9,
      revisions: [{ stage: 'full', aliases: ['stable'] }],
      aliases: [{ alias: 'stable', revision: first.revision }],
    });
  });

  it('four eyes: the second person signs what the first has signed', async () => {
    const revision = first.revision;
    await promoteTo(revision, { stage: 'canary', share: 0.5 });
    const evidence = [rates(runAt(4, 300, 5, 60))];
    const asked = {
      revision,
      from: { stage: 'canary', share: 0.5 } as Standing,
      to: { stage: 'full' } as Standing,
      evidence,
      at: now,
    };
    const post = async (...people: Person[]) =>
      ask(models.onTransition, {}, { envelope: await signMove(asked, ...people) });
    const waits = await post(bob);
    expect(waits).toMatchObject({ status: 202, body: { missing: 1, signers: ['bob'] } });
    // A full list of signatures still has a place for the next one.
    for (let more = 0; more <= MODEL_SIGNATURES_MAX; more += 1)
      expect(await post(bob)).toMatchObject({ status: 202, body: { missing: 1 } });
    const { signatures } = (await ask(models.onSeeTransition, { id: waits.body.id })).body.envelope;
    expect(signatures).toHaveLength(1);
    expect(await post(ann)).toMatchObject({ status: 202, body: { missing: 1 } });
    const kept = await ask(models.onSeeTransition, { id: waits.body.id });
    expect(kept.body.envelope.payload).toBe((await signMove(asked, cleo)).payload);
    const done = await post(cleo);
    expect(done).toMatchObject({ status: 200, body: { missing: 0, signers: ['bob', 'ann', 'cleo'] } });
    // A retry after a lost answer gets the same answer.
    expect((await post(cleo)).body).toEqual(done.body);
    expect((await state()).body.revisions[0].stage).toBe('full');
  });

  it('a signature that is not good opens nothing, whatever the others are', async () => {
    const asked = {
      revision: first.revision,
      from: { stage: 'develop-verify' },
      to: { stage: 'grey' },
      at: now,
    } as const;
    const good = await signMove({ ...asked, evidence: forGrey() }, ann);
    const other = await signMove(asked, bob);
    const envelope = { ...good, signatures: [...good.signatures, ...other.signatures] };
    expect(await ask(models.onTransition, {}, { envelope })).toMatchObject({
      status: 422,
      body: { error: { reason: 'signature_invalid' } },
    });
    expect((await state()).body.revisions[0].stage).toBe('develop-verify');
  });

  it('a slow and a less accurate revision stay where they are', async () => {
    const from: Standing = { stage: 'develop-verify' };
    const [scan, load, , words] = forGrey() as [never, never, never, never];
    const slow = { kind: 'latency', tool: 't', sla: 100, windows: [150, 150, 150] } satisfies Evidence;
    expect(
      await send({ revision: first.revision, from, to: { stage: 'grey' }, evidence: [scan, load, slow, words] }, ann),
    ).toMatchObject({
      status: 422,
      body: { error: { params: { rule: '"latency" is FAIL' } } },
    });
    const [, , quick] = forGrey() as [never, never, never];
    expect(
      await send(
        { revision: first.revision, from, to: { stage: 'grey' }, evidence: [scan, load, quick, quality(30)] },
        ann,
      ),
    ).toMatchObject({ status: 422, body: { error: { params: { rule: '"quality" is FAIL' } } } });
  });

  const promoteTo = async (revision: string, to: Standing) => {
    await send({ revision, from: { stage: 'develop-verify' }, to: { stage: 'grey' }, evidence: forGrey() }, ann);
    await send({ revision, from: { stage: 'grey' }, to: { stage: 'canary', share: 0.01 }, evidence: forCanary() }, bob);
    for (let at = 0; at < shares.indexOf(to.share as 0.5); at += 1) {
      const [one, two] = [shares[at] as 0.01, shares[at + 1] as 0.05];
      await send(
        {
          revision,
          from: { stage: 'canary', share: one },
          to: { stage: 'canary', share: two },
          evidence: [rates(runAt(at, 300, 0, 0))],
        },
        bob,
      );
    }
  };
});

describe('T1: versions and roll back', () => {
  beforeEach(async () => {
    await register(first);
    await register(second);
    await promote(first.revision, [bob, cleo]);
    await setAlias(first.revision);
    now += 10_000;
    await promote(second.revision, [ann, cleo]);
    await setAlias(second.revision, first.revision);
  });

  it('a rollback returns to the former revision, from the current one only', async () => {
    const { body } = await state();
    const [{ revision, before }] = body.aliases;
    expect([revision, before]).toEqual([second.revision, first.revision]);
    expect(await setAlias(first.revision, first.revision)).toMatchObject({
      status: 409,
      body: { error: { reason: 'alias_moved' } },
    });
    expect(await setAlias(before, revision)).toMatchObject({ status: 200, body: { revision: first.revision } });
  });

  it('an operator retires an unnamed revision; the functions’ signature opens no human gate', async () => {
    const own = await makeP256();
    desk = { ...desk, ownKey: own, signers: [...desk.signers, { name: FUNCTIONS, key: toBase64(own.publicKey) }] };
    const retire = (revision: string) => ask(models.onRetire, { revision });
    expect(await retire(second.revision)).toMatchObject({ status: 422, body: { error: { reason: 'gate_closed' } } });
    const target = await retire(first.revision);
    expect(target).toMatchObject({ status: 422, body: { error: { reason: 'gate_closed' } } });
    expect(target.body.error.params.rule).toContain('would roll back to it');
    await setAlias(first.revision, second.revision);
    expect(await retire(second.revision)).toMatchObject({
      ...{ status: 200, body: { to: { stage: 'retired' }, signers: [FUNCTIONS], missing: 0 } },
    });
    const { statement } = (await ask(models.onLog)).body.entries.at(-1);
    const { body } = await ask(models.onSeeTransition, { id: statement });
    expect(atob(body.envelope.payload)).toContain('asked for by an operator of acme');
    expect(await retire(second.revision)).toMatchObject({ status: 422 });
    expect(await retire(`sha256:${'0'.repeat(64)}`)).toMatchObject({ status: 404 });
    const again = { revision: second.revision, from: { stage: 'retired' }, to: { stage: 'develop-verify' } } as const;
    now += 1;
    expect(await send(again, ann)).toMatchObject({ status: 200 });
    const itself = { name: FUNCTIONS, key: own };
    const on = { ...again, from: again.to, to: { stage: 'grey' }, evidence: forGrey() } as const;
    now += 1;
    expect(await send(on, itself)).toMatchObject({ status: 202, body: { missing: 1 } });
    desk = { ...desk, ownKey: undefined };
    expect(await retire(second.revision)).toMatchObject({ status: 503, body: { error: { reason: 'models_closed' } } });
  });

  it('all models are listed, with what answers', async () => {
    expect((await ask(models.onModels)).body).toEqual({ models: [{ model: 'reference-en', stable: second.revision }] });
    expect(await ask(models.onModels, {}, undefined, {}, false)).toMatchObject({ status: 403 });
  });

  it('production at a given time', async () => {
    const { body: all } = await ask(models.onLog);
    const moved = (all.entries as Entry[]).filter((one) => one.type === 'alias');
    expect(moved).toHaveLength(2);
    const [one, two] = moved as [Entry, Entry];
    const named = async (at: number | string) => (await state({ at: String(at) })).body.aliases[0]?.revision;
    expect(await named(one.at - 1)).toBeUndefined();
    expect(await named(two.at - 1)).toBe(first.revision);
    expect(await named(new Date(two.at).toISOString())).toBe(second.revision);
    expect(await state({ at: 'yesterday' })).toMatchObject({ status: 400 });
  });

  it('the log is in pages, and each entry names the one before', async () => {
    const { body } = await ask(models.onLog, {}, undefined, { after: '3' });
    expect(body.entries[0].seq).toBe(4);
    expect(new Set(body.entries.map(({ before }: Entry) => before)).size).toBe(body.entries.length);
  });
});

describe('C7: concurrent writers and interruptions', () => {
  const grey = { from: { stage: 'develop-verify' }, to: { stage: 'grey' } } as const;

  it('two at once: both are written, one after the other', async () => {
    rows.before = async () => void (await register(second));
    expect((await register(first)).status).toBe(201);
    expect((await state()).body.revisions).toHaveLength(2);
    expect((await ask(models.onLog)).body.entries.map(({ seq }: Entry) => seq)).toEqual([1, 2]);
  });

  it('the same move twice at once: one of them is refused as passed', async () => {
    await register(first);
    const asked = { revision: first.revision, ...grey, evidence: forGrey() };
    rows.before = async () => void (await send(asked, ann));
    now += 1;
    expect(await send({ ...asked, evidence: [...forGrey(), ...forGrey()] }, cleo)).toMatchObject({
      status: 409,
      body: { error: { reason: 'stage_passed' } },
    });
  });

  it('each entry is reported to the audit log once, in order', async () => {
    await register(first);
    await send({ revision: first.revision, ...grey, evidence: forGrey() }, ann);
    await setAlias(first.revision, undefined, 'beta');
    expect(told.map(({ draft }) => draft)).toMatchObject([
      { type: 'model.stage', revision: first.revision, to: 'develop-verify' },
      { type: 'model.stage', from: 'develop-verify', to: 'grey', gate: 'grey', verdict: 'PASS' },
      { type: 'model.stage', alias: 'beta', to: 'beta' },
    ]);
    expect(new Set(told.map(({ id }) => id)).size).toBe(3);
  });

  it('an entry the audit log refused is reported later under the same id', async () => {
    deaf = true;
    expect(await register(first)).toMatchObject({ status: 503, body: { error: { reason: 'audit_unavailable' } } });
    expect((await state()).body.revisions).toHaveLength(1);
    deaf = false;
    expect((await register(first)).status).toBe(201);
    expect(told).toHaveLength(1);
    // Told, and then it was not known that it was.
    const before = told[0]?.id;
    rows.before = async () => {
      throw new Error('the table is gone');
    };
    told = [];
    await register(second).catch(() => undefined);
    await register(second);
    expect(told.map(({ id }) => id)).not.toContain(before);
    expect(new Set(told.map(({ id }) => id)).size).toBe(1);
  });
});

describe('C7, T1: the release map', () => {
  const last = () => released.at(-1);

  it('says what answers, what is tried on how many, and what was there before', async () => {
    await register(first);
    await promote(first.revision, [bob, cleo]);
    // Revisions served before the log existed remain until an alias "stable" exists.
    expect(last()).toBeUndefined();
    await setAlias(first.revision);
    expect(last()?.models['reference-en']).toEqual({ stable: first.revision });
    await register(second);
    await promote(second.revision, [ann, cleo]);
    const canary = released.map(({ models: { 'reference-en': one } }) => one?.canary?.share).filter(Boolean);
    expect([...new Set(canary)]).toEqual([0.01, 0.05, 0.1, 0.25, 0.5]);
    await setAlias(second.revision, first.revision);
    expect(last()?.models['reference-en']).toEqual({ stable: second.revision, before: first.revision });
    await setAlias(first.revision, second.revision);
    expect(last()?.models['reference-en']).toEqual({ stable: first.revision, before: second.revision });
  });

  it('has a generation that rises with each change only', async () => {
    await register(first);
    await promote(first.revision, [bob, cleo]);
    await setAlias(first.revision);
    const { generation = 0 } = last() ?? {};
    expect((await publishRelease(desk)).generation).toBe(generation);
    const generations = released.map((one) => one.generation);
    expect(generations).toEqual([...generations].sort((one, other) => one - other));
  });

  it('an unreachable edge is updated later; callers do not wait', async () => {
    await register(first);
    await promote(first.revision, [bob, cleo]);
    lost = true;
    expect((await setAlias(first.revision)).status).toBe(200);
    lost = false;
    await publishRelease(desk);
    expect(last()?.models['reference-en']?.stable).toBe(first.revision);
  });

  it('an interruption between log and map is repaired', async () => {
    await register(first);
    await promote(first.revision, [bob, cleo]);
    // The entry is written, and the map is not.
    const failMap = async (changes: readonly Change[]) => {
      if (changes.some(({ key }) => key === 'map')) throw new Error('the table is gone');
      rows.before = failMap;
    };
    rows.before = failMap;
    expect((await setAlias(first.revision)).status).toBe(200);
    expect(last()).toBeUndefined();
    rows.before = undefined;
    expect((await publishRelease(desk)).models['reference-en']?.stable).toBe(first.revision);
  });
});
