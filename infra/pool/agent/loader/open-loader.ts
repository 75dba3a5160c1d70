import promises from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Registry } from 'prom-client';
import type { SignerKey } from '../../../../shared/registry/signature-key.ts';
import type { Engine } from '../engine/engine.ts';
import type { FunctionsCall } from '../identity/call-functions.ts';
import type { ReleaseMapStore } from '../identity/release-map.ts';
import { createRepositoryReader, type ModelSourceOptions, serve } from '../models/model-source.ts';
import { isSpeechModel, readModel } from '../models/models.ts';
import { createRecognisers } from '../models/recogniser.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { LoaderSettings } from '../settings/settings.ts';
import { FileStore } from '../store/file-store.ts';
import { placedName } from './builds.ts';
import { createReleased, mountedRevision } from './catalog.ts';
import { EngineFolder, type PlacedRevision } from './engine-folder.ts';
import { partOf } from './engine-names.ts';
import type { KnownRevision } from './known-revision.ts';
import { Loader } from './loader.ts';
import { createTierMetrics, type TierLevel } from './metrics.ts';

/** Interval of looks at a mounted repository for new models. */
const MOUNTED_MS = 10_000;
/** Name of the mounted repository in log lines. */
const MOUNTED = 'AURICLE_MODELS';

export interface OpenLoaderOptions extends ModelSourceOptions {
  readonly settings: LoaderSettings;
  readonly engine: Engine;
  readonly releaseMap: Pick<ReleaseMapStore, 'current'>;
  readonly signers: readonly SignerKey[];
  /** Calls the functions; absent where the settings name none. */
  readonly call: ((call: FunctionsCall) => Promise<Response>) | undefined;
  readonly onChange: () => Promise<void>;
  /** Registry of the metrics page. */
  readonly registry: Registry;
}

/** Opens the store and the engine's repository, and returns the loader. */
export async function openLoader(options: OpenLoaderOptions): Promise<Loader> {
  const { settings, engine, now, log, signers, call, onChange, releaseMap } = options;
  // A wrong setting ends the start.
  await promises.readdir(options.repository);
  const stopped = new AbortController();
  const metrics = createTierMetrics(options.registry, (): readonly TierLevel[] => loader.levels());
  const store = await FileStore.open({
    folder: settings.store,
    bytes: settings.bytes.ssd,
    // Files of revisions on disk are pinned; others go in any order.
    order: (files) => files,
    disk: promises,
    now,
    sleep: async (milliseconds, signal) =>
      void (await sleep(milliseconds, undefined, { signal }).catch(() => undefined)),
    every: (milliseconds, work) => {
      const timer = setInterval(work, milliseconds).unref();
      return () => clearInterval(timer);
    },
    signal: stopped.signal,
    metrics,
  });
  const folder = await EngineFolder.open({ folder: settings.repository, store, disk: promises });
  const catalog = path.join(settings.repository, '..', 'catalog');
  await promises.rm(catalog, { recursive: true, force: true });
  const { target } = settings;
  const fetchReleased = call && createReleased({ call, signers, store, disk: promises, folder: catalog, now, target });
  const loader = new Loader({
    ...{ engine, store, folder, now, log, metrics, onChange, bytes: settings.bytes },
    released: () => releaseMap.current()?.models ?? {},
    mounted: createMounted(options, target),
    fetchReleased:
      fetchReleased ??
      (async () => {
        throw new Error('no functions to fetch it from');
      }),
    serve: createServe(options),
  });
  return loader;
}

/** Returns a reader of the mounted repository, which reads it again when a file has changed. */
function createMounted(options: ModelSourceOptions, target: string): () => Promise<readonly KnownRevision[]> {
  const reader = createRepositoryReader(options);
  let models: Awaited<ReturnType<typeof reader.read>> = [];
  let readAt = Number.NEGATIVE_INFINITY;
  const onRead = (read: typeof models) => {
    reader.onGood(MOUNTED);
    return read;
  };
  // A file system that is away takes no revision out of service: its files are in the store.
  const onAway = (error: unknown) => {
    reader.onBroken(MOUNTED, error instanceof Error ? error.message : 'it cannot be read');
    return models;
  };
  return async () => {
    const isDue = options.now() - readAt >= MOUNTED_MS;
    if (isDue || !(await Promise.all(models.map(({ unchanged }) => unchanged()))).every(Boolean)) {
      models = await reader.read().then(onRead, onAway);
      readAt = options.now();
    }
    return models.flatMap((model) => {
      const known = mountedRevision(options.repository, model, target);
      if (!known.ok) reader.onBroken(model.description.name, known.refusal);
      return known.ok ? [known.value] : [];
    });
  };
}

/** Returns a maker of models from their folders in the engine's repository. */
function createServe(options: ModelSourceOptions) {
  /** Digests of the files of the revision that is being loaded, by path in the engine's repository. */
  const digests = new Map<string, string>();
  const recogniserOf = createRecognisers((file) => digests.get(file) ?? file);
  return async ({ description, digest, files }: KnownRevision, placed: PlacedRevision): Promise<ServedModel> => {
    const { repository, names } = placed;
    digests.clear();
    for (const file of files) {
      const name = placedName(file);
      digests.set(
        path.resolve(repository, (names.get(partOf(name)) ?? '') + name.slice(name.indexOf('/'))),
        file.digest,
      );
    }
    const known = { name: description.name, revision: digest, unchanged: async () => true };
    const model = await readModel({ repository, now: options.now(), known }, names.get(description.name) ?? '');
    if (!model) throw new Error('it has no parameters of the agent');
    const recogniser = isSpeechModel(model) ? await recogniserOf(model) : undefined;
    const { unchanged: _, ...served } = serve(model, recogniser, options);
    return served;
  };
}
