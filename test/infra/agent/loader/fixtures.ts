import promises from 'node:fs/promises';
import path from 'node:path';
import { Registry } from 'prom-client';
import { expect } from 'vitest';
import { EngineFolder } from '../../../../infra/pool/agent/loader/engine-folder.ts';
import { engineNames } from '../../../../infra/pool/agent/loader/engine-names.ts';
import type { KnownRevision } from '../../../../infra/pool/agent/loader/known-revision.ts';
import { Loader, type LoaderOptions } from '../../../../infra/pool/agent/loader/loader.ts';
import { createTierMetrics, type TierLevel } from '../../../../infra/pool/agent/loader/metrics.ts';
import type { StoreOptions } from '../../../../infra/pool/agent/store/contract.ts';
import type { ModelRelease } from '../../../../shared/registry/release.ts';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { LoadingEngine } from '../../../fake/loading-engine.ts';
import { patience, testDescription } from '../start-agent.ts';
import { createSource, makeFile, openStore, temporary } from '../store/fixtures.ts';

export const never = new AbortController().signal;

/** Makes a revision of the model `m` with networks of its own. */
export function makeRevision(name = 'm', bytes = 10_000, count = 1): KnownRevision {
  const made = Array.from({ length: count }, () => makeFile(bytes));
  const files = made.map(({ digest }, at) => ({ name: `${name}/${at + 1}/model.onnx`, digest, bytes }));
  const digest = digestOfFiles(files);
  const description = { ...testDescription, name, revision: digest };
  return { digest, files, description, source: createSource(made).source };
}

export const nameOf = ({ description, files }: KnownRevision) =>
  engineNames(files, new Map()).get(description.name) ?? '';

/** Opens a loader over the revisions of a model store. */
export async function setUp(
  revisions: readonly KnownRevision[],
  options: Partial<LoaderOptions> = {},
  kept: Partial<StoreOptions> = {},
) {
  const folder = path.join(await temporary(), 'engine');
  const registry = new Registry();
  const metrics = createTierMetrics(registry, (): readonly TierLevel[] => loader.levels());
  const store = await openStore({ folder: await temporary(), metrics, ...kept });
  const engine = new LoadingEngine();
  const world = {
    released: {} as Record<string, ModelRelease>,
    mounted: [] as KnownRevision[],
    now: 1_000_000,
  };
  const loader = new Loader({
    ...{ engine, store, metrics, bytes: { engine: 1e9, ram: 1e9, ssd: 1e9 }, log: () => {}, now: () => world.now },
    folder: await EngineFolder.open({ folder, store, disk: promises }),
    released: () => world.released,
    mounted: async () => world.mounted,
    async fetchReleased(model, revision) {
      const found = revisions.find(({ description, digest }) => description.name === model && digest === revision);
      if (!found) throw new Error('the store lacks it');
      return found;
    },
    serve: async (known) => ({ description: known.description, engineModel: nameOf(known) }),
    onChange: async () => {},
    ...options,
  });
  const served = () => loader.served().map(({ description }) => description.revision);
  const waitFor = (...wanted: readonly KnownRevision[]) =>
    expect.poll(() => served().sort(), patience).toEqual(wanted.map(({ digest }) => digest).sort());
  /** Samples of the metrics page by name and labels, without buckets. */
  const scrape = async () =>
    Object.fromEntries(
      (await registry.metrics()).split('\n').flatMap((line) => {
        const [, name = '', value] = /^auricle_agent_(?!\w*_bucket)(\S+) (\S+)$/.exec(line) ?? [];
        return value === undefined ? [] : [[name.replaceAll('"', ''), Number(value)]];
      }),
    );
  return { loader, engine, world, folder, store, waitFor, scrape };
}
