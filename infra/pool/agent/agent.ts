import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import type { JSONWebKeySet } from 'jose';
import { limits } from '../../../shared/limits.ts';
import type { ModelDescription, PoolDescription } from '../../../shared/pool/description.ts';
import type { Load } from '../../../shared/pool/heartbeat.ts';
import { createAttest } from './attest.ts';
import { openBatch } from './batch/batch.ts';
import { createStorage } from './batch/storage.ts';
import { openDesk, type ServedModel } from './desk.ts';
import { createDispatcher } from './dispatch.ts';
import type { Engine } from './engine.ts';
import { createKserveEngine } from './engine-kserve.ts';
import { createEngineMetrics } from './engine-metrics.ts';
import { createEngineRepository } from './engine-repository.ts';
import { createHeartbeat, reconnectPause } from './heartbeat.ts';
import { createKeys, type Keys, openSuites, sha256 } from './keys.ts';
import { createCalls } from './kserve/calls.ts';
import { createLaneReader } from './lanes.ts';
import { LiveBook } from './live/book.ts';
import { createLiveTeller } from './live/tell-live.ts';
import { createLoadFailures } from './load-failures.ts';
import { createLog, type Log } from './log.ts';
import { createMetrics } from './metrics.ts';
import { createModelSource, type Entry } from './model-source.ts';
import { type Outbox, openOutbox } from './record.ts';
import { openReleaseMap } from './release-map.ts';
import { createAgentServer } from './serve.ts';
import { createServiceTime } from './serving-time.ts';
import { readJson, type Settings } from './settings.ts';
import { type Clock, systemClock } from './stream/clock.ts';
import { createStreamDoor } from './stream/door.ts';
import { createEnds } from './stream/ends.ts';
import { createStreamMetrics } from './stream/metrics.ts';
import { createSequenceIds } from './stream/sequence-ids.ts';
import { createTracks } from './stream/tracks.ts';
import { createReplayCache, createTicketReader } from './ticket.ts';
import { createEngineWatch } from './watch.ts';
import { createZoneKeyring } from './zone-key.ts';

/** What tests put in the place of the world. */
export interface World {
  readonly now?: () => number;
  readonly write?: (line: string) => void;
  readonly engine?: Engine;
  readonly models?: readonly ServedModel[];
  readonly keepaliveMs?: number;
  readonly clock?: Clock;
}

export interface Agent {
  /** Where it listens. */
  readonly url: string;
  readonly keys: Keys;
  /** Takes no new work, finishes what is in flight within the drain time, closes everything. */
  stop(): Promise<void>;
}

/** Share of an attestation's life after which the next one is fetched. */
const RENEW_AT = 0.5;

interface RenewalOptions {
  readonly keys: Keys;
  readonly outbox: Outbox;
  readonly log: Log;
  readonly agent: string;
  readonly now: () => number;
  readonly onRenewed: () => void;
}

/** Keeps the keys attested: at half the life of each attestation, or when asked, the next one is made. */
function createRenewal({ keys, outbox, log, agent, now, onRenewed }: RenewalOptions) {
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;
  let stopped = false;

  function schedule(act: () => void, milliseconds: number) {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(act, milliseconds);
  }

  async function renew(): Promise<void> {
    try {
      const { token, expires } = await keys.renew(now());
      failures = 0;
      for (const suite of openSuites) {
        outbox.record({ type: 'keys', agent, action: 'attested', suite, attestation: sha256(token) });
      }
      log('attested');
      schedule(again, Math.max(1_000, (expires * 1_000 - now()) * RENEW_AT));
    } catch (error) {
      log('attest-failed', { reason: error instanceof Error ? error.name : 'unknown' });
      await new Promise<void>((resolve) => schedule(resolve, reconnectPause(failures++, Math.random())));
      await renew();
    }
  }

  const again = () => void renew().then(onRenewed);
  return {
    first: renew,
    /** Makes the next attestation after a pause, in place of the scheduled one. */
    renewAfter: (milliseconds: number) => schedule(again, milliseconds),
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** Who must have signed what is served; `undefined` where nobody looks. */
const entryOf = ({ agent, modelSigners, mode }: Settings, { record }: Outbox): Entry | undefined =>
  modelSigners && { agent, signers: modelSigners, strict: mode === 'production', record };

/** Starts an agent: keys, attestation, engine watch, server, heartbeat. Resolves when it listens. */
export async function startAgent(settings: Settings, world: World = {}): Promise<Agent> {
  const now = world.now ?? Date.now;
  const log = createLog(settings.agent, now, world.write ?? ((line) => void process.stdout.write(line)));
  const stepSlots = settings.slots * limits.stepsPerSlot.value;
  const engine = world.engine ?? createKserveEngine(settings.engineUrl, settings.slots + stepSlots);
  const outbox = openOutbox(settings.stateDir, settings.agent, now);
  const keys = await createKeys(settings.agent, createAttest(settings.attestation));
  const { models: given } = world;
  const reload = given
    ? async () => given
    : createModelSource(settings.models, now, log, (task) => dispatcher.run(task), entryOf(settings, outbox));
  const models = await reload();
  const { serviceKeys, stateDir } = settings;
  const releaseMap = await openReleaseMap({ keys: serviceKeys, stateDir, now, log });
  const failures = createLoadFailures({ repository: createEngineRepository(settings.engineUrl), now, log });
  const watch = createEngineWatch({
    engine,
    models,
    reload,
    failures,
    record: outbox.record,
    log,
    agent: settings.agent,
  });
  const serviceTime = createServiceTime(now);
  const dispatcher = createDispatcher({
    engine,
    slots: settings.slots,
    levels: watch.levels,
    now,
    onServed(milliseconds) {
      serviceTime.add(milliseconds);
      metrics.served(milliseconds);
    },
  });
  const calls = createCalls({ engineUrl: settings.engineUrl, dispatcher, levels: watch.levels, now });
  const metrics = createMetrics({
    queued: dispatcher.queued,
    busy: () => desk.busy(),
    slotsUsed: dispatcher.busy,
    engineReady: watch.ready,
    draining: () => desk.draining(),
    failedModels: () => failures.list().length,
    engine: watch.statistics,
    ...(settings.engineMetricsUrl && { enginePage: createEngineMetrics(settings.engineMetricsUrl) }),
  });
  const clock: Clock = world.clock ?? { ...systemClock, now };
  const tracks = createTracks({
    engine,
    slots: stepSlots,
    capacity: settings.streams,
    rebuilds: Math.max(1, Math.floor(stepSlots * limits.streamRebuildShare.value)),
    clock,
  });
  const { release, zone, poolTokenFile } = settings;
  const keyring =
    release &&
    createZoneKeyring({
      release,
      zone,
      keys,
      poolTokenFile,
      now,
      onReleased(kids) {
        for (const kid of kids) {
          outbox.record({ type: 'keys', agent: settings.agent, action: 'setup', detail: `zone ${zone}, key ${kid}` });
        }
      },
    });
  const ends = createEnds(engine, clock);
  const book = new LiveBook();
  const streamMetrics = createStreamMetrics(metrics.registry, { open: () => desk.streams.size(), tracks });
  const edgeKeys = readJson(settings.edgeKeysFile) as JSONWebKeySet;
  /** A revision that was taken back answers nothing new; what it has begun it ends. */
  const model = (name: string) => {
    const found = watch.model(name);
    return found && releaseMap.part(found.description) !== undefined ? found : undefined;
  };
  const desk = openDesk({
    agent: settings.agent,
    now,
    keys,
    readTicket: createTicketReader(settings.agent, edgeKeys),
    readLane: createLaneReader(settings.agent, edgeKeys, keys),
    replays: createReplayCache(),
    dispatcher,
    calls,
    metrics,
    log,
    model,
    pace: () => ({ serviceMs: serviceTime.mean(), slots: settings.slots }),
    keepaliveMs: world.keepaliveMs ?? limits.keepaliveMs.value,
    live: {
      most: settings.streams,
      clock,
      tracks,
      ends,
      metrics: streamMetrics,
      engineReady: watch.ready,
      newId: createSequenceIds(Math.random()),
    },
    book,
    files: keyring && { keyring, storage: createStorage() },
  });
  const door = createStreamDoor(desk);
  const { ready } = watch;
  const { batch } = settings;
  // Jobs are everybody's: what is only tried gets none.
  const takes = (one: ModelDescription) => ['full', 'older'].includes(releaseMap.part(one) ?? '');
  const served = () => watch.descriptions().flatMap((one) => (takes(one) ? [one.name] : []));
  const taker =
    batch && keyring
      ? await openBatch({ settings, batch, keys, keyring, dispatcher, metrics, model, models: served, ready, log, now })
      : undefined;

  const teller =
    batch &&
    createLiveTeller({
      url: batch.functionsUrl,
      agent: settings.agent,
      keys,
      token: () => readFileSync(settings.poolTokenFile, 'utf8').trim(),
      now,
      book,
      describe: watch.descriptions,
      log,
    });

  const server = createAgentServer(desk, {
    ready: () => watch.ready() && !desk.draining(),
    failed: failures.list,
  });
  server.on('upgrade', (incoming, socket, head) => void door.serve(incoming, socket, head));
  const load = (): Load => {
    const failed = failures.list().slice(0, limits.loadFailures.value);
    return {
      busy: desk.busy(),
      streams: desk.streams.size(),
      queued: dispatcher.queued(),
      serviceMs: serviceTime.mean(),
      draining: desk.draining(),
      engineReady: watch.ready(),
      ...(failed.length > 0 && { failed }),
    };
  };
  let url = '';
  const describe = (): PoolDescription => ({
    agent: settings.agent,
    pool: settings.pool,
    zone: settings.zone,
    region: settings.region,
    platform: settings.platform,
    endpoint: settings.endpoint ?? url,
    accelerator: settings.accelerator,
    slots: settings.slots,
    streams: settings.streams,
    suites: [...openSuites],
    lanes: true,
    models: watch.descriptions(),
  });
  const heartbeat = createHeartbeat({
    edgeUrl: settings.edgeUrl,
    token: () => readFileSync(settings.poolTokenFile, 'utf8').trim(),
    keys,
    describe,
    load,
    outbox,
    release: releaseMap,
    onDrain() {
      desk.drain();
      taker?.drain();
    },
    onStale: (pauseMs) => renewal.renewAfter(pauseMs),
    log,
    now,
  });
  const renewal = createRenewal({ keys, outbox, log, agent: settings.agent, now, onRenewed: heartbeat.renew });

  await renewal.first();
  await watch.look();
  watch.start();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(settings.port, settings.host, resolve);
  });
  url = `http://${settings.host}:${(server.address() as AddressInfo).port}`;
  heartbeat.start();
  taker?.start();
  teller?.start();
  log('started');

  let stopping: Promise<void> | undefined;
  async function stop(): Promise<void> {
    log('stopping', { count: desk.busy() + desk.streams.size() });
    desk.drain();
    await Promise.all([desk.empty(settings.drainMs), taker?.stop(settings.drainMs)]);
    await Promise.all([ends.settle(limits.agentGoodbyeMs.value), door.close(limits.agentGoodbyeMs.value)]);
    await calls.close();
    // Acknowledged now or sent by whoever starts next in this place.
    outbox.record({ type: 'keys', agent: settings.agent, action: 'gone' });
    await Promise.all([heartbeat.stop(), teller?.stop()]);
    renewal.stop();
    watch.stop();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
    engine.close();
  }
  return {
    url,
    keys,
    stop() {
      stopping ??= stop();
      return stopping;
    },
  };
}
