// Local Azure Functions host: loads an app that uses the real functions library and drives its triggers
// against local storage, with the same promises (at least once, retries, poison queues). DIFFERENCES.md lists
// its gaps.
import './stand-in.ts';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { listenToBlobs } from './blob.ts';
import type { BlobEvent, HostContext } from './context.ts';
import { readHostJson } from './host-json.ts';
import { type Route, routeOf, serveHttp } from './http.ts';
import { listenToQueue } from './queue.ts';
import { type HostLog, modelOf, registry, runHooks, type Trigger } from './registry.ts';
import { openAccounts } from './storage.ts';
import { listenToTimer, type RunNow } from './timer.ts';

export type HostOptions = {
  /** The app: this folder holds host.json. */
  folder: string;
  /** The file that registers the functions, absolute or relative to `folder`. */
  entry: string;
  port: number;
  /** Application settings: connection strings and values of `%NAME%` in bindings. */
  settings: Record<string, string | undefined>;
  log: HostLog;
  pollMs?: number;
  /**
   * Number of deliveries of a blob event to a trigger with the source `EventGrid`: 1, and in tests also 0 or
   * 2, as the platform's events may be lost or duplicated.
   */
  deliveries?: (event: BlobEvent) => number;
};

export type Host = { port: number; functions: string[]; stop(): Promise<void> };

/** Poll interval of triggers with work, ms. */
const POLL_MS = 250;

/** Capabilities that the host reports to the library. */
const CAPABILITIES = {
  RawHttpBodyBytes: 'true',
  RpcHttpTriggerMetadataRemoved: 'true',
  RpcHttpBodyOnly: 'true',
  TypedDataCollection: 'true',
  WorkerStatus: 'true',
};

export async function startHost(options: HostOptions): Promise<Host> {
  registry.log = options.log;
  await import(pathToFileURL(path.resolve(options.folder, options.entry)).href);
  await runHooks('appStart', {
    hookData: registry.appLevelHookData,
    appHookData: registry.appHookData,
    functionAppDirectory: options.folder,
  });
  const capabilities = await modelOf().getCapabilities({ ...CAPABILITIES });
  if (capabilities.HttpUri) throw new Error('the app turns HTTP streaming on, which the local host does not emulate');
  registry.locked = true;

  const working = new Set<Promise<unknown>>();
  const ending = new AbortController();
  const context: HostContext = {
    settings: options.settings,
    hostJson: readHostJson(path.join(options.folder, 'host.json')),
    accounts: openAccounts(options.settings),
    hostId: path.basename(options.folder),
    log: options.log,
    pollMs: options.pollMs ?? POLL_MS,
    deliveries: options.deliveries ?? (() => 1),
    stopping: ending.signal,
    track: (work) => {
      working.add(work);
      const drop = () => working.delete(work);
      work.then(drop, drop);
      return work;
    },
  };
  const { routes, timers } = await connectTriggers(context);
  const server = await serveHttp(context, { host: '127.0.0.1', port: options.port }, routes, timers);

  return {
    port: (server.address() as AddressInfo).port,
    functions: [...registry.functions.keys()],
    async stop() {
      ending.abort();
      server.close();
      server.closeIdleConnections();
      await Promise.allSettled(working);
      server.closeAllConnections();
      await runHooks('appTerminate', { hookData: registry.appLevelHookData, appHookData: registry.appHookData });
    },
  };
}

type Connected = { routes: Route[]; timers: Map<string, RunNow> };
type Connect = (context: HostContext, trigger: Trigger, connected: Connected) => Promise<void> | void;

const triggers: Record<string, Connect> = {
  httptrigger: (context, trigger, { routes }) => {
    routes.push(routeOf(context, trigger));
  },
  timertrigger: (context, trigger, { timers }) => {
    timers.set(trigger.target.metadata.name, listenToTimer(context, trigger));
  },
  queuetrigger: listenToQueue,
  blobtrigger: listenToBlobs,
};

async function connectTriggers(context: HostContext): Promise<Connected> {
  const connected: Connected = { routes: [], timers: new Map() };
  for (const target of registry.functions.values()) {
    for (const [triggerName, binding] of Object.entries(target.metadata.bindings)) {
      if (binding.direction === 'out') continue;
      const connect = triggers[binding.type.toLowerCase()];
      // A trigger that silently never fires would cost an afternoon.
      if (!connect) throw new Error(`"${binding.type}" of ${target.metadata.name} is not emulated`);
      await connect(context, { target, triggerName, binding }, connected);
    }
  }
  return connected;
}
