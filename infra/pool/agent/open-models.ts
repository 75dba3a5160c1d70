import type { Registry } from 'prom-client';
import type { Dispatcher } from './engine/dispatch.ts';
import type { Engine } from './engine/engine.ts';
import { createLoadFailures } from './engine/load-failures.ts';
import { callFunctions, type FunctionsCall } from './identity/call-functions.ts';
import type { Keys } from './identity/keys.ts';
import type { Outbox } from './identity/record.ts';
import type { ReleaseMapStore } from './identity/release-map.ts';
import type { Loader } from './loader/loader.ts';
import { openLoader } from './loader/open-loader.ts';
import { createModelSource, type Entry } from './models/model-source.ts';
import type { ServedModel } from './models/served-model.ts';
import { createServerModels } from './models/server-models.ts';
import type { Settings } from './settings/settings.ts';
import type { Log } from './telemetry/log.ts';

/** Signers that a served revision needs; `undefined` where signatures are not checked. */
const entryOf = ({ agent, modelSigners, mode }: Settings, { record }: Outbox): Entry | undefined =>
  modelSigners && { agent, signers: modelSigners, strict: mode === 'production', record };

/** Returns what calls the functions with the identity of this agent; `undefined` where the settings name none. */
function callerOf({ settings, keys, token, now }: ModelsParts) {
  const { agent, batch } = settings;
  if (!batch) return undefined;
  return (call: FunctionsCall) => callFunctions({ url: batch.functionsUrl, agent, keys, token, now }, call);
}

/** Models of an agent, wherever they come from. */
export interface Models {
  read(): Promise<readonly ServedModel[]>;
  /** Models that failed to load; `look` is called each time the watch looks at the engine. */
  readonly failures: Pick<ReturnType<typeof createLoadFailures>, 'look' | 'list'>;
  /** Absent: the engine has loaded its models itself. */
  readonly loader?: Loader | undefined;
}

interface ModelsParts {
  readonly settings: Settings;
  readonly engine: Engine;
  readonly outbox: Outbox;
  readonly keys: Keys;
  /** Reads the pool token. */
  readonly token: () => string;
  readonly releaseMap: ReleaseMapStore;
  readonly now: () => number;
  readonly log: Log;
  readonly registry: Registry;
  /** Models of a test. */
  readonly given: readonly ServedModel[] | undefined;
  readonly run: Dispatcher['run'];
  readonly onChange: () => Promise<void>;
}

/** Opens the models that the loader loads, that a speech server lists, or that the engine serves in place. */
export async function openModels(parts: ModelsParts): Promise<Models> {
  const { settings, engine, outbox, releaseMap, now, log, registry, given, run, onChange } = parts;
  const options = {
    repository: settings.models,
    names: settings.modelNames,
    now,
    log,
    run,
    entry: entryOf(settings, outbox),
  };
  if (settings.loader) {
    const call = callerOf(parts);
    const signers = settings.modelSigners ?? [];
    const loader = await openLoader({
      ...options,
      settings: settings.loader,
      engine,
      registry,
      releaseMap,
      signers,
      call,
      onChange,
    });
    const failures = { look: async () => void loader.refresh(), list: () => loader.failures() };
    return { read: async () => given ?? loader.served(), failures, loader };
  }
  if (settings.engine.kind === 'openai') {
    const server = createServerModels({ engine, settings: settings.engine, now, log });
    await server.refresh();
    // The watch reads models between two looks, so a look does not wait for them.
    const look = async () => void server.refresh().then((isOther) => (isOther ? onChange() : undefined));
    return { read: async () => given ?? server.served(), failures: { look, list: () => [] } };
  }
  const read = given ? async () => given : createModelSource(options);
  return { read, failures: createLoadFailures({ engine, now, log }) };
}
