import type { AgentDescription, ModelDescription } from '../../../shared/pool/description.ts';
import type { Load } from '../../../shared/pool/heartbeat.ts';
import { LOAD_FAILURES_MAX } from '../../../shared/pool/heartbeat.ts';
import type { Backend } from './backend.ts';
import { RosterHeartbeat } from './identity/heartbeat.ts';
import { openSuites } from './identity/keys.ts';
import { listModels } from './identity/listed-models.ts';
import { createRenewal } from './identity/renewal.ts';
import { openBatch } from './jobs/batch.ts';
import { createLiveReporter } from './live-counts/report.ts';
import type { Serving } from './serving.ts';

/** Returns models whose jobs an agent takes, and families of which it detects the languages. */
function queuesOf(models: readonly ModelDescription[], detects: boolean): string[] {
  const families = detects ? models.flatMap(({ family }) => family ?? []) : [];
  return [...new Set([...models.map(({ name }) => name), ...families])];
}

/** Returns the taker of jobs; `undefined` where the settings name no queue. */
async function openTaker(backend: Backend, { keyring, context }: Serving) {
  const { settings, keys, poolToken, dispatcher, metrics, model, lease, releaseMap, watch, log, now } = backend;
  const { batch } = settings;
  if (!batch || !keyring) return undefined;
  // A revision on trial gets no jobs.
  const takes = (one: ModelDescription) => ['full', 'older'].includes(releaseMap.part(one) ?? '');
  const { detector } = context;
  const models = () => queuesOf(watch.descriptions().filter(takes), detector() !== undefined);
  const work = { dispatcher, detector, metrics, model, lease, models, ready: watch.ready };
  return openBatch({ settings, batch, keys, token: poolToken.read, keyring, ...work, log, now });
}

/** Returns what reports live counts to the functions; `undefined` where the settings name none. */
function openReporter(backend: Backend, { book }: Serving) {
  const { settings, keys, poolToken, now, watch, log } = backend;
  if (!settings.batch) return undefined;
  const { functionsUrl: url } = settings.batch;
  return createLiveReporter({
    url,
    agent: settings.agent,
    keys,
    token: poolToken.read,
    now,
    book,
    describe: watch.descriptions,
    log,
  });
}

function loadOf(backend: Backend, { context }: Serving): Load {
  const { failures, dispatcher, serviceTime, watch, power, degrader } = backend;
  const degraded = degrader.level();
  const failed = failures.list().slice(0, LOAD_FAILURES_MAX);
  const drawn = power();
  const full = context.full();
  return {
    busy: context.busy(),
    streams: context.streams.size(),
    queued: dispatcher.queued(),
    serviceMs: serviceTime.mean(),
    draining: context.draining(),
    engineReady: watch.ready(),
    ...(drawn !== undefined && { power: drawn }),
    ...(full.length > 0 && { full }),
    ...(degraded > 0 && { degraded }),
    ...(failed.length > 0 && { failed }),
  };
}

function describe({ settings, descriptions }: Backend, url: string): AgentDescription {
  const { agent, pool, zone, region, platform, accelerator, device, price, location, slots, streams } = settings;
  return {
    ...{ agent, pool, zone, region, platform, accelerator, device, price, location, slots, streams },
    endpoint: settings.endpoint ?? url,
    suites: [...openSuites],
    models: listModels(descriptions()),
  };
}

/** Opens an agent's own connections: heartbeat, attestation, jobs and reports. `url` is where it listens. */
export async function openUplink(backend: Backend, serving: Serving, url: () => string) {
  const { settings, keys, poolToken, outbox, releaseMap, log, now } = backend;
  const { agent, edgeUrl } = settings;
  const taker = await openTaker(backend, serving);
  const reporter = openReporter(backend, serving);
  const heartbeat = new RosterHeartbeat({
    ...{ edgeUrl, keys, outbox, log, now, release: releaseMap },
    token: poolToken.read,
    describe: () => describe(backend, url()),
    load: () => loadOf(backend, serving),
    onDrain() {
      serving.context.drain();
      taker?.drain();
    },
    onStale: (pauseMs) => renewal.renewAfter(pauseMs),
  });
  const renewal = createRenewal({ keys, outbox, log, agent, now, onRenewed: heartbeat.renew });
  return {
    /** Resolves when the agent has a pool token and an attestation. */
    identify: async () => void (await Promise.all([poolToken.first(), renewal.first()])),
    start() {
      heartbeat.start();
      taker?.start();
      reporter?.start();
    },
    stopJobs: async (milliseconds: number) => taker?.stop(milliseconds),
    async stop() {
      await Promise.all([heartbeat.stop(), reporter?.stop()]);
      renewal.stop();
      poolToken.stop();
    },
  };
}
