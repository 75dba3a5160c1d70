// The functions' side of a simulated run: registry, model store and tiers as they are, on rows and blobs whose calls
// fail. A function may be killed at any of them.
import { createHash } from 'node:crypto';
import { afterEntry } from '../../../functions/registry/after-entry.ts';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import {
  addressFiles,
  hasFiles,
  hashForgotten,
  hashUpload,
  planFiles,
} from '../../../functions/registry/model-files.ts';
import { moveAlias } from '../../../functions/registry/move-alias.ts';
import { enrolModel, publishRelease } from '../../../functions/registry/publish-release.ts';
import { requireOnline } from '../../../functions/registry/require-online.ts';
import { append } from '../../../functions/registry/stored-model.ts';
import { moveTiers } from '../../../functions/registry/tiers.ts';
import { type BlobFacts, MODELS, type Placement } from '../../../functions/store/blobs.ts';
import { type Registry, registry, STABLE } from '../../../shared/registry/registry.ts';
import type { ReleaseMap } from '../../../shared/registry/release.ts';
import { digestOfFiles } from '../../../shared/registry/revision.ts';
import { makeBundle } from '../../../shared/registry/signature-bundle.ts';
import type { Standing } from '../../../shared/registry/stage.ts';
import type { BlobTier, RehydratePriority } from '../../../shared/registry/tiers.ts';
import { ok } from '../../../shared/result.ts';
import { ModelBlobs } from '../../fake/model-blobs.ts';
import { call, type Life, Outage, type Rates, TableModel } from '../../fake/storage.ts';
import type { World } from '../batch/world.ts';

const HOUR_MS = 3_600_000;
const rates: Rates = { failed: 0.01, persisted: 0.01, slow: 0.01, slowMs: 20_000 };
/** Factor between the files here and those whose storage costs more than a move. */
const SCALE = 1e6;
/** Signature of every revision: only its form is read here. */
const BUNDLE = makeBundle({
  ...{ payload: 'e30=', payloadType: 'application/vnd.in-toto+json' },
  signatures: [{ keyid: 'author', sig: 'e30=' }],
});

export interface SimulatedFile {
  readonly name: string;
  readonly digest: string;
  readonly bytes: number;
  readonly content: string;
}

export interface SimulatedRevision {
  readonly model: string;
  readonly digest: string;
  readonly files: readonly SimulatedFile[];
}

function makeFile(name: string, bytes: number): SimulatedFile {
  const content = name.repeat(Math.ceil(bytes / name.length)).slice(0, bytes);
  return { name, bytes, content, digest: createHash('sha256').update(content).digest('hex') };
}

/** Makes a revision of a network of its own and a vocabulary that all revisions of the model share. */
export function makeRevision(model: string, version: number, bytes: number): SimulatedRevision {
  const network = { ...makeFile(`${model}${version}`, bytes), name: `${model}/1/model.onnx` };
  const files = [network, { ...makeFile(`${model}-words`, 500), name: `${model}-words/1/words` }];
  return { model, files, digest: digestOfFiles(files) };
}

/** Blobs with tiers: a return from archive takes hours. */
class TieredBlobs extends ModelBlobs {
  readonly #returns = new Map<string, number>();

  override async copy(from: string, to: string, found: BlobFacts): Promise<boolean> {
    const isNew = (await this.find(to, found.name)) === undefined;
    const done = await super.copy(from, to, found);
    if (isNew) this.place(found.name, { tier: 'hot', since: this.now() });
    return done;
  }

  override async find(container: string, name: string): Promise<BlobFacts | undefined> {
    const found = await super.find(container, name);
    return found?.placed && { ...found, placed: this.#settle(name, found.placed) };
  }

  /** Lists with the sizes of real models. */
  override async list(container: string): Promise<BlobFacts[]> {
    const found = await super.list(container);
    return found.map((one) => ({
      ...one,
      bytes: one.bytes * SCALE,
      ...(one.placed && { placed: this.#settle(one.name, one.placed) }),
    }));
  }

  #settle(name: string, placed: Placement): Placement {
    const end = this.#returns.get(name) ?? 0;
    if (!placed.returning || end > this.now()) return placed;
    const next = { tier: placed.returning.to, since: end };
    this.place(name, next);
    return next;
  }

  override async setTier(container: string, name: string, to: BlobTier, priority: RehydratePriority = 'standard') {
    const { placed } = (await this.find(container, name)) ?? {};
    if (!placed) throw new Error('BlobNotFound');
    if (placed.returning && to !== placed.returning.to) throw new Error('BlobBeingRehydrated');
    if (placed.tier === to || placed.returning?.priority === priority) return;
    if (placed.tier !== 'archive') return this.place(name, { tier: to, since: this.now() });
    this.#returns.set(name, this.now() + (priority === 'high' ? HOUR_MS : 15 * HOUR_MS));
    this.place(name, { ...placed, returning: { to, priority } });
  }
}

export class ModelStore {
  readonly world: World;
  readonly table = new TableModel(() => {});
  readonly blobs = new TieredBlobs();
  /** Newest release map of the edge. */
  map: ReleaseMap = { v: 1, generation: 0, models: {} };
  /** Blob storage does not answer. */
  isDown = false;
  /** Every revision that may be registered. */
  readonly revisions: readonly SimulatedRevision[];
  /** Revisions whose files were stored. */
  readonly complete = new Set<SimulatedRevision>();

  constructor(world: World, revisions: readonly SimulatedRevision[]) {
    this.world = world;
    this.revisions = revisions;
    this.blobs.now = () => world.now;
    this.blobs.isPending = () => world.bad(0.2);
  }

  #context(life: Life): ModelContext {
    const { world, blobs } = this;
    const on =
      <Given extends unknown[], T>(work: (...given: Given) => Promise<T>) =>
      (...given: Given): Promise<T> =>
        call(world, life, rates, () => {
          if (this.isDown) throw new Outage('storage is down');
          return work.apply(blobs, given);
        }) as Promise<T>;
    const { find, digest, copy, discard, list, setTier } = blobs;
    const calls = { find: on(find), digest: on(digest), copy: on(copy), discard: on(discard), list: on(list) };
    const publish = (map: ReleaseMap) =>
      call(world, life, rates, () => {
        if (map.generation > this.map.generation) this.map = map;
      });
    return {
      rows: this.table.open(world, life, rates),
      blobs: {
        ...calls,
        setTier: on(setTier),
        address: (container, name, right) => blobs.address(container, name, right),
      },
      ...{ signers: [], zone: 'eu', audit: undefined, edge: { publish }, log: () => {}, now: () => world.now },
      settings: { EDGE_KEYS: undefined, ISSUERS: undefined, ATTESTATION: undefined } as never,
    };
  }

  /** Runs a function, which may be killed; `undefined` when it did not end. */
  async run<T>(work: (context: ModelContext) => Promise<T>): Promise<T | undefined> {
    const life = { calls: this.world.bad(0.15) ? this.world.between(1, 20) : Number.POSITIVE_INFINITY };
    try {
      return await work(this.#context(life));
    } catch (error) {
      if (error instanceof Outage || /the release map changes|being rehydrated/i.test(String(error))) return undefined;
      this.world.bugs.push(error);
      throw error;
    }
  }

  /** Registers a revision; its gates are not the subject. */
  register = ({ model, digest: revision }: SimulatedRevision) =>
    this.run(async (context) => {
      await enrolModel(context, model);
      await append(context, model, (known) => {
        const draft = { type: 'revision', revision, author: 'author' } as const;
        const change = { type: 'put', key: `b!${revision}`, value: { bundle: BUNDLE } } as const;
        return ok({
          draft: Object.hasOwn(known.revisions, revision) ? undefined : draft,
          answer: undefined,
          changes: [change],
        });
      });
    });

  /** Sends what the store lacks of a revision; some uploads are corrupt or cut. */
  async push(revision: SimulatedRevision): Promise<void> {
    const { world } = this;
    const files = revision.files.map(({ name, digest, bytes }) => ({ name, digest, bytes }));
    const planned = await this.run((context) => planFiles(context, revision.model, revision.digest, files));
    for (const { digest, url } of planned?.ok ? planned.value.files : []) {
      if (this.isDown) return;
      const { content = '' } = revision.files.find((file) => file.digest === digest) ?? {};
      const length = world.bad(0.1) ? world.between(0, content.length) : content.length;
      if (url !== undefined)
        this.blobs.write(
          url,
          content.slice(0, length).replace(/^./, (a) => (world.bad(0.1) ? '?' : a)),
        );
      await this.run((context) => hashUpload(context, digest));
    }
    if (planned?.ok && planned.value.complete) this.complete.add(revision);
  }

  /** Moves a revision to a stage once its files are stored and online, as its gate requires. */
  move = ({ model, digest: revision }: SimulatedRevision, to: Standing) =>
    this.run(async (context) => {
      const done = await append(context, model, async (known) => {
        const { standing: from } = known.revisions[revision] ?? {};
        const isStable = known.aliases[STABLE]?.revision === revision;
        const isTaken = Object.values(known.revisions).some(({ standing }) => standing.stage === to.stage);
        const isMissing = to.stage !== 'develop-verify' && !(await hasFiles(context, model, revision));
        if (!from || isMissing || (isStable && to.stage !== 'full') || (to.stage === 'canary' && isTaken))
          return ok({ draft: undefined, answer: undefined });
        const online = to.stage === 'develop-verify' ? ok(undefined) : await requireOnline(context, model, revision);
        if (!online.ok) return online;
        return ok({ draft: { type: 'stage', revision, from, to, statement: 's', signers: [] }, answer: undefined });
      });
      if (done.ok) await afterEntry(context, model);
    });

  alias = ({ model, digest: revision }: SimulatedRevision) =>
    this.run((context) => {
      const from = this.registry(model)?.aliases[STABLE]?.revision;
      return moveAlias(context, model, { alias: STABLE, revision, ...(from !== undefined && { from }) });
    });

  rollBack = (model: string) =>
    this.run(async (context) => {
      const { revision: from, before } = this.registry(model)?.aliases[STABLE] ?? {};
      if (before !== undefined) await moveAlias(context, model, { alias: STABLE, revision: before, from });
    });

  addresses = (model: string, revision: string) => this.run((context) => addressFiles(context, model, revision));

  async onTimer(): Promise<void> {
    await this.run((context) => publishRelease(context));
    await this.run(moveTiers);
    this.blobs.endCopies(() => (this.world.bad(0.3) ? 'failed' : 'success'));
    await this.run(hashForgotten);
  }

  /** Reads the registry of a model past all faults. */
  registry(model: string): Registry | undefined {
    const row = this.table.read(model, 'head');
    return row && registry.parse(row.value.registry);
  }

  /** Finds violations of the store: a revision in no tier, and a stable alias whose files cannot be read. */
  async findWrong(models: readonly string[]): Promise<string[]> {
    const wrong: string[] = [];
    const isStored = ({ digest, content }: SimulatedFile) => this.blobs.read(`read:${MODELS}/${digest}`) === content;
    for (const { model, digest, files } of this.complete)
      if (!files.every(isStored)) wrong.push(`${model} ${digest} is in no tier`);
    for (const model of models) {
      const stable = this.registry(model)?.aliases[STABLE]?.revision;
      if (stable === undefined) continue;
      const revision = this.revisions.find((one) => one.digest === stable);
      if (!revision?.files.every(isStored)) wrong.push(`the alias of ${model} names a revision without files`);
      for (const { digest } of revision?.files ?? [])
        if ((await this.blobs.find(MODELS, digest))?.placed?.tier === 'archive') wrong.push(`${model} is archived`);
    }
    return wrong;
  }
}
