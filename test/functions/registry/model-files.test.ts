// The model store: files by digest, hashed before they count.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { HttpRequest } from '@azure/functions';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import {
  addressFiles,
  hashForgotten,
  hashUpload,
  listFiles,
  planFiles,
} from '../../../functions/registry/model-files.ts';
import { onAgentFiles, onPlanFiles } from '../../../functions/registry/on-model-files.ts';
import * as models from '../../../functions/registry/on-models.ts';
import type { Evidence } from '../../../shared/registry/evidence.ts';
import { fileAddresses, fileProofOf, MODEL_FILE_BYTES_MAX } from '../../../shared/registry/model-files.ts';
import { digestOfFiles } from '../../../shared/registry/revision.ts';
import { makeBundle, openBundle } from '../../../shared/registry/signature-bundle.ts';
import { signPayload } from '../../../shared/registry/signature-envelope.ts';
import { writeManifest } from '../../../shared/registry/signature-manifest.ts';
import { ModelBlobs } from '../../fake/model-blobs.ts';
import { MemoryRows } from '../../fake/rows.ts';
import { forGrey, makeP256, type Person, signerOf, signMove } from '../../shared/registry/people.ts';
import { makeCallers } from '../callers.ts';
import { askModels } from './ask-models.ts';

const MODEL = 'reference-en';
const callers = await makeCallers();
const author: Person = { name: 'author', key: await makeP256() };
const digestOf = (bytes: string) => createHash('sha256').update(bytes).digest('hex');
const fileOf = (name: string, bytes: string) => ({ name, digest: digestOf(bytes), bytes: bytes.length });

/** Two revisions that share a vocabulary. */
const shared = fileOf('reference-en/tokens.txt', 'a b c');
const first = [fileOf('reference-en/1/model.onnx', 'first network'), shared];
const second = [fileOf('reference-en/1/model.onnx', 'second network'), shared];

let blobs: ModelBlobs;
let context: ModelContext;

beforeEach(() => {
  blobs = new ModelBlobs();
  context = {
    ...{ rows: new MemoryRows(), blobs, signers: [signerOf(author)], zone: 'eu', audit: undefined, edge: undefined },
    ...{ settings: callers.settings, log: () => {}, now: () => Date.now() },
  };
});

async function register(files: readonly { name: string; digest: string }[]): Promise<string> {
  const revision = digestOfFiles(files);
  const payload = writeManifest({ name: MODEL, hash: 'sha256', files, revision });
  const bundle = makeBundle(await signPayload(payload, author.key));
  expect((await askModels(callers, context, models.onRevision, { body: { bundle } })).status).toBe(201);
  return revision;
}

async function plan(revision: string, files: typeof first) {
  const planned = await planFiles(context, MODEL, revision, files);
  if (!planned.ok) throw new Error(planned.refusal.reason);
  return planned.value;
}

async function askAsAgent(revision: string, job?: string) {
  const sent = JSON.stringify({ v: 1, model: MODEL, revision });
  const body = JSON.stringify({ request: sent, proof: await callers.proofOf(job ?? fileProofOf(sent)) });
  const headers = { authorization: `Bearer ${await callers.poolToken('eu')}` };
  const url = 'http://functions/api/agents/models';
  const answered = await onAgentFiles(context)(
    new HttpRequest({ url, method: 'POST', headers, body: { string: body } }),
  );
  return { status: answered.status, body: answered.jsonBody };
}

/** Sends every missing file and has it hashed. */
async function push(revision: string, files: typeof first, contents: Record<string, string>) {
  for (const { digest, url } of (await plan(revision, files)).files) {
    if (url === undefined) continue;
    blobs.write(url, contents[digest] ?? '');
    await hashUpload(context, digest);
  }
  return plan(revision, files);
}
const contents = Object.fromEntries(
  ['first network', 'second network', 'a b c'].map((bytes) => [digestOf(bytes), bytes]),
);

describe('C7: the model store', () => {
  it('calls a file that is stored between two looks stored', async () => {
    const one = await register(first);
    const [network] = (await plan(one, first)).files;
    const { digest, url } = network!;
    blobs.write(url ?? '', contents[digest] ?? '');
    // The function copies the upload and discards it after the first look.
    const find = blobs.find.bind(blobs);
    blobs.find = async (container, name) => {
      const found = await find(container, name);
      if (name !== digest) return found;
      blobs.find = find;
      await hashUpload(context, digest);
      return found;
    };
    expect((await plan(one, first)).files[0]).toMatchObject({ digest, state: 'stored' });
  });

  it('names an address for each missing file and none for stored ones', async () => {
    const one = await register(first);
    expect((await plan(one, first)).files.map(({ state }) => state)).toEqual(['missing', 'missing']);
    expect(await push(one, first, contents)).toMatchObject({ complete: true });
    const two = await register(second);
    const { files, complete } = await plan(two, second);
    expect(complete).toBe(false);
    expect(files.map(({ digest, state, url }) => [digest, state, url])).toEqual([
      [digestOf('second network'), 'missing', `write:model-uploads/${digestOf('second network')}`],
      [shared.digest, 'stored', undefined],
    ]);
  });

  it('refuses files that make another revision, and revisions that are unknown', async () => {
    const one = await register(first);
    expect(await planFiles(context, MODEL, one, second)).toMatchObject({ refusal: { reason: 'model_files_invalid' } });
    const unknown = digestOfFiles(second);
    expect(await planFiles(context, MODEL, unknown, second)).toMatchObject({ refusal: { reason: 'revision_unknown' } });
  });

  it('refuses a list that names one file as two by a line break', async () => {
    const one = await register(first);
    const [network, vocabulary] = first as [(typeof first)[0], (typeof first)[0]];
    const name = `${network.name}\n${vocabulary.digest} ${vocabulary.name}`;
    const body = { files: [{ ...network, name }] };
    expect(digestOfFiles(body.files)).toBe(one);
    expect(await askModels(callers, context, onPlanFiles, { params: { revision: one }, body })).toMatchObject({
      status: 400,
    });
  });

  it('discards an upload with other bytes than its digest names', async () => {
    const one = await register(first);
    const [network] = (await plan(one, first)).files;
    blobs.write(network?.url ?? '', 'other network');
    expect((await plan(one, first)).files[0]?.state).toBe('hashing');
    expect(await hashUpload(context, digestOf('first network'))).toBe('discarded');
    expect((await plan(one, first)).files[0]?.state).toBe('missing');
  });

  it('keeps stored bytes when the address writes again', async () => {
    const one = await register(first);
    const [network] = (await plan(one, first)).files;
    await push(one, first, contents);
    blobs.write(network?.url ?? '', 'swapped network');
    await hashForgotten(context);
    expect(await addressFiles(context, MODEL, one)).toMatchObject({ ok: true });
    expect(await plan(one, first)).toMatchObject({ complete: true });
  });

  it('stores nothing of an upload that is replaced while it is hashed', async () => {
    const one = await register(first);
    const [network] = (await plan(one, first)).files;
    blobs.write(network?.url ?? '', 'first network');
    blobs.onDigest = () => blobs.write(network?.url ?? '', 'other network');
    expect(await hashUpload(context, digestOf('first network'))).toBe('open');
    expect((await plan(one, first)).files[0]?.state).toBe('hashing');
  });

  it('allows the time to hash the largest file at 10 MB/s', () => {
    const host = JSON.parse(readFileSync(new URL('../../../functions/host.json', import.meta.url), 'utf8'));
    const [hours, minutes, seconds] = String(host.functionTimeout).split(':').map(Number) as [number, number, number];
    expect(MODEL_FILE_BYTES_MAX / 10e6).toBeLessThan((hours * 60 + minutes) * 60 + seconds);
  });

  it('counts a file as hashing while its copy is pending', async () => {
    const one = await register(first);
    blobs.isPending = () => true;
    await push(one, first, contents);
    // The event and the timer hash the same upload: the later one must not discard it.
    await hashForgotten(context);
    expect((await plan(one, first)).files.map(({ state }) => state)).toEqual(['hashing', 'hashing']);
    expect(await listFiles(context, MODEL, one)).toMatchObject({ value: { complete: false } });
    expect(await addressFiles(context, MODEL, one)).toMatchObject({ refusal: { reason: 'model_files_missing' } });
    blobs.endCopies(() => 'success');
    await hashForgotten(context);
    expect(await plan(one, first)).toMatchObject({ complete: true });
    expect(await blobs.list('model-uploads')).toEqual([]);
  });

  it('keeps the upload when another function begins the copy first', async () => {
    const one = await register(first);
    const [network] = (await plan(one, first)).files;
    blobs.write(network?.url ?? '', 'first network');
    blobs.isPending = () => true;
    blobs.onDigest = async () => {
      blobs.onDigest = () => {};
      await hashUpload(context, digestOf('first network'));
    };
    expect(await hashUpload(context, digestOf('first network'))).toBe('open');
    expect(await blobs.list('model-uploads')).toHaveLength(1);
  });

  it('copies again after a failed copy, and never counts it as stored', async () => {
    const one = await register(first);
    blobs.isPending = () => true;
    await push(one, first, contents);
    blobs.endCopies(() => 'failed');
    expect(await listFiles(context, MODEL, one)).toMatchObject({ value: { complete: false } });
    blobs.isPending = () => false;
    await hashForgotten(context);
    expect(await plan(one, first)).toMatchObject({ complete: true });
    expect(blobs.read(`read:models/${shared.digest}`)).toBe('a b c');
  });

  it('refuses another size than that of a stored file', async () => {
    const one = await register(first);
    await push(one, first, contents);
    const wrong = first.map((file) => ({ ...file, bytes: 0 }));
    expect(await planFiles(context, MODEL, one, wrong)).toMatchObject({ refusal: { reason: 'model_files_invalid' } });
  });

  it('calls a list with a wrong size incomplete until it is corrected', async () => {
    const one = await register(first);
    const wrong = first.map((file) => ({ ...file, bytes: 1 }));
    for (const { digest, url } of (await plan(one, wrong)).files) blobs.write(url ?? '', contents[digest] ?? '');
    await hashForgotten(context);
    expect(await listFiles(context, MODEL, one)).toMatchObject({ value: { complete: false } });
    expect(await plan(one, first)).toMatchObject({ complete: true });
  });

  it('hashes a file whose event was lost', async () => {
    const one = await register(first);
    for (const { digest, url } of (await plan(one, first)).files) blobs.write(url ?? '', contents[digest] ?? '');
    await hashForgotten(context);
    expect(await plan(one, first)).toMatchObject({ complete: true });
    const files = first.map((file) => ({ ...file, state: 'stored' }));
    expect(await listFiles(context, MODEL, one)).toMatchObject({ value: { complete: true, files } });
  });

  it('opens no gate before every file is stored', async () => {
    const revision = await register(first);
    const move = async () => {
      const asked = { revision, from: { stage: 'develop-verify' }, to: { stage: 'grey' } } as const;
      const envelope = await signMove({ ...asked, at: Date.now(), evidence: forGrey() }, author);
      return askModels(callers, context, models.onTransition, { body: { envelope } });
    };
    expect(await move()).toMatchObject({ status: 409, body: { error: { reason: 'model_files_missing' } } });
    await push(revision, first, contents);
    expect(await move()).toMatchObject({ status: 200 });
  });

  it('opens no gate by evidence that was measured on another revision', async () => {
    const revision = await register(first);
    await push(revision, first, contents);
    const [scan, ...others] = forGrey();
    const evidence = [{ ...scan, facts: { revision: digestOfFiles(second) } } as Evidence, ...others];
    const asked = {
      revision,
      from: { stage: 'develop-verify' },
      to: { stage: 'grey' },
      at: Date.now(),
      evidence,
    } as const;
    const moved = await askModels(callers, context, models.onTransition, {
      body: { envelope: await signMove(asked, author) },
    });
    expect(moved).toMatchObject({ status: 422, body: { error: { reason: 'gate_closed' } } });
  });

  it('gives attested agents the signature and an address for each file', async () => {
    const revision = await register(first);
    await push(revision, first, contents);
    const { status, body } = await askAsAgent(revision);
    expect(status).toBe(200);
    const { bundle, files } = fileAddresses.parse(body);
    expect(await openBundle(bundle, [signerOf(author)])).toMatchObject({ ok: true, value: { manifest: { revision } } });
    expect(files.map(({ url }) => url)).toEqual(first.map(({ digest }) => `read:models/${digest}`));
  });

  it('A11 answers the expected time instead of an address of an archived file', async () => {
    const revision = await register(first);
    await push(revision, first, contents);
    blobs.place(digestOf('first network'), { tier: 'archive', since: 0 });
    const { body } = await askAsAgent(revision);
    const [network, vocabulary] = fileAddresses.parse(body).files;
    expect(network).toMatchObject({ expected: expect.any(Number) });
    expect(network).not.toHaveProperty('url');
    expect(vocabulary).toMatchObject({ url: `read:models/${shared.digest}` });
  });

  it('refuses an agent without credentials before it reads the body', async () => {
    const request = {
      headers: new Headers(),
      get body(): never {
        throw new Error('read');
      },
    };
    expect((await onAgentFiles(context)(request as unknown as HttpRequest)).status).toBe(401);
  });

  it('refuses a proof for another request', async () => {
    const revision = await register(first);
    expect(await askAsAgent(revision, 'files of another request')).toMatchObject({ status: 401 });
  });
});
