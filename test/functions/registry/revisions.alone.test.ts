// Permissions and names of revisions over HTTP, and the largest possible release map.
import { generateKeyPairSync } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import * as models from '../../../functions/registry/on-models.ts';
import { openReleaseEdge } from '../../../functions/registry/publish-release.ts';
import { PROPERTIES_PER_VALUE_MAX, PROPERTY_CHARACTERS } from '../../../functions/store/table-rows.ts';
import { ROSTER_MESSAGE_BYTES } from '../../../infra/pool/agent/identity/heartbeat.ts';
import { RELEASE_BYTES, releaseMap, sentRelease } from '../../../shared/registry/release.ts';
import type { Bundle } from '../../../shared/registry/signature-bundle.ts';
import type { Standing } from '../../../shared/registry/stage.ts';
import { ModelBlobs } from '../../fake/model-blobs.ts';
import { RowsWithFiles } from '../../fake/rows-with-files.ts';
import {
  forGrey,
  type Move,
  makeP256,
  makeRevision,
  makeSm2,
  type Person,
  signerOf,
  signMove,
} from '../../shared/registry/people.ts';
import { largestMap } from '../../shared/registry/releases.ts';
import { makeCallers } from '../callers.ts';
import { askModels, type Handler } from './ask-models.ts';

const callers = await makeCallers();
const ann: Person = { name: 'ann', key: await makeP256() };
const bob: Person = { name: 'bob', key: makeSm2() };
const cleo: Person = { name: 'cleo', key: await makeP256() };
const first = await makeRevision('one', ann);

let rows: RowsWithFiles;
let now: number;
let desk: ModelContext;

beforeEach(() => {
  rows = new RowsWithFiles();
  now = Date.now();
  desk = {
    blobs: new ModelBlobs(),
    ...{ rows, signers: [ann, bob, cleo].map(signerOf), zone: 'eu', audit: undefined, edge: undefined },
    ...{ settings: callers.settings, log: () => {}, now: () => now },
  };
});

const ask = (handler: Handler, params?: Record<string, string>, body?: unknown) =>
  askModels(callers, desk, handler, { params, body });

const register = (one: { bundle: Bundle }) => ask(models.onRevision, {}, { bundle: one.bundle });
const send = async (asked: Omit<Move, 'at'>, ...people: Person[]) =>
  ask(models.onTransition, {}, { envelope: await signMove({ ...asked, at: now }, ...people) });
const state = () => ask(models.onModel);

describe('C7, A15: revisions', () => {
  it('a digest registered first by another author stays registrable', async () => {
    await register(first);
    const same = await makeRevision('one', cleo);
    expect(await register(same)).toMatchObject({ status: 201, body: { author: 'ann', authors: ['cleo'] } });
    expect((await register(same)).body.authors).toEqual(['cleo']);
    expect((await ask(models.onSeeRevision, { revision: first.revision })).body.bundle).toEqual(same.bundle);
    await promoteTo(first.revision);
    expect(await register(await makeRevision('one', bob, 'sm3'))).toMatchObject({ status: 422 });
  });

  it('names that every object has name nothing', async () => {
    await register(first);
    desk = { ...desk, ownKey: ann.key };
    for (const revision of ['constructor', '__proto__', 'toString', 'none'])
      for (const handler of [models.onEvidence, models.onSeeRevision, models.onRetire])
        expect(await ask(handler, { revision }), revision).toMatchObject({
          status: 404,
          body: { error: { reason: 'revision_unknown' } },
        });
    const alias = { alias: 'constructor' };
    expect((await ask(models.onAlias, alias, {})).body).toEqual({ ...alias, since: expect.any(Number) });
    expect((await ask(models.onAlias, alias, { revision: first.revision })).body).toMatchObject(alias);
    expect((await state()).body.aliases).toMatchObject([{ ...alias, revision: first.revision }]);
    expect(await ask(models.onAlias, { alias: '__proto__' }, {})).toMatchObject({ status: 400 });
  });

  const promoteTo = async (revision: string) => {
    now += 1;
    const from: Standing = { stage: 'develop-verify' };
    expect(await send({ revision, from, to: { stage: 'grey' }, evidence: forGrey() }, ann)).toMatchObject({
      status: 200,
    });
  };

  it('a machine that makes revisions begins no transition either', async () => {
    await register(first);
    const worker = { name: 'quantiser', key: await makeP256() };
    desk = { ...desk, signers: [...desk.signers, { ...signerOf(worker), worker: true }] };
    const from: Standing = { stage: 'develop-verify' };
    const asked = { revision: first.revision, from, to: { stage: 'grey' }, evidence: forGrey() } as const;
    expect(await send(asked, worker)).toMatchObject({ status: 422, body: { error: { reason: 'signature_invalid' } } });
    expect((await rows.scan('reference-en', 's!', 's!~', 9)).length).toBe(0);
    expect(await send(asked, worker, ann)).toMatchObject({ status: 200, body: { signers: ['ann'] } });
  });
});

describe('C7, T1: the release map', () => {
  it('the largest possible map is stored, sent and forwarded', async () => {
    const map = releaseMap.parse(largestMap(1));
    const answer = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json({ generation: 1 }));
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = { ...privateKey.export({ format: 'jwk' }), kid: 'k'.repeat(64) };
    const edge = openReleaseEdge({ EDGE_URL: 'http://edge', SERVICE_KEY: key as never });
    await edge?.publish(map);
    const body = String(answer.mock.calls[0]?.[1]?.body);
    answer.mockRestore();
    expect(sentRelease.safeParse(JSON.parse(body)).success).toBe(true);
    expect(body.length).toBeLessThanOrEqual(RELEASE_BYTES);
    expect(body.length + 1_000).toBeLessThan(ROSTER_MESSAGE_BYTES);
    const { names: _, ...row } = map;
    expect(JSON.stringify({ ...row, named: 1 }).length).toBeLessThanOrEqual(
      PROPERTIES_PER_VALUE_MAX * PROPERTY_CHARACTERS,
    );
  });
});
