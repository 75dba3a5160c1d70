import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import type { JSONWebKeySet } from 'jose';
import { limits } from '../../../shared/limits.ts';
import type { PoolDescription } from '../../../shared/pool/description.ts';
import type { Load } from '../../../shared/pool/heartbeat.ts';
import { createAttest } from './attest.ts';
import { openDesk, type ServedModel } from './desk.ts';
import { createDispatcher } from './dispatch.ts';
import type { Engine } from './engine.ts';
import { createKserveEngine } from './engine-kserve.ts';
import { createEngineMetrics } from './engine-metrics.ts';
import { createHeartbeat, reconnectPause } from './heartbeat.ts';
import { createKeys, type Keys, openSuites, sha256 } from './keys.ts';
import { createServiceTime } from './load.ts';
import { createLog, type Log } from './log.ts';
import { createMetrics } from './metrics.ts';
import { createModelSource } from './model-source.ts';
import { type Outbox, openOutbox } from './record.ts';
import { createAgentServer } from './serve.ts';
import { readJson, type Settings } from './settings.ts';
import { createReplayCache, createTicketReader } from './ticket.ts';
import { createEngineWatch } from './watch.ts';

/** What tests put in the place of the world. */
export interface World {
  readonly now?: () => number;
  readonly write?: (line: string) => void;
  readonly engine?: Engine;
  readonly models?: readonly ServedModel[];
  readonly keepaliveMs?: number;
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

/** Keeps the keys attested: at half the life of each attestation the next one is made. */
function createRenewal({ keys, outbox, log, agent, now, onRenewed }: RenewalOptions) {
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;

  async function renew(): Promise<void> {
    try {
      const { token, expires } = await keys.renew(now());
      failures = 0;
      for (const suite of openSuites) {
        outbox.record({ type: 'keys', agent, action: 'attested', suite, attestation: sha256(token) });
      }
      log('attested');
      timer = setTimeout(again, Math.max(1_000, (expires * 1_000 - now()) * RENEW_AT));
    } catch (error) {
      log('attest-failed', { reason: error instanceof Error ? error.name : 'unknown' });
      await new Promise<void>((resolve) => {
        timer = setTimeout(resolve, reconnectPause(failures++, Math.random()));
      });
      await renew();
    }
  }

  const again = () => void renew().then(onRenewed);
  return { first: renew, stop: () => clearTimeout(timer) };
}

/** Starts an agent: keys, attestation, engine watch, server, heartbeat. Resolves when it listens. */
export async function startAgent(settings: Settings, world: World = {}): Promise<Agent> {
  const now = world.now ?? Date.now;
  const log = createLog(settings.agent, now, world.write ?? ((line) => void process.stdout.write(line)));
  const engine = world.engine ?? createKserveEngine(settings.engineUrl, settings.slots);
  const outbox = openOutbox(settings.stateDir, settings.agent, now);
  const keys = await createKeys(settings.agent, createAttest(settings.attestation));
  const { models: given } = world;
  const reload = given ? async () => given : createModelSource(settings.models, now, log);
  const models = await reload();
  const watch = createEngineWatch({ engine, models, reload, record: outbox.record, log, agent: settings.agent });
  const serviceTime = createServiceTime(now);
  const dispatcher = createDispatcher({
    engine,
    slots: settings.slots,
    now,
    onServed(milliseconds) {
      serviceTime.add(milliseconds);
      metrics.served(milliseconds);
    },
  });
  const metrics = createMetrics({
    queued: dispatcher.queued,
    busy: () => desk.busy(),
    slotsUsed: dispatcher.busy,
    engineReady: watch.ready,
    draining: () => desk.draining(),
    engine: watch.statistics,
    ...(settings.engineMetricsUrl && { enginePage: createEngineMetrics(settings.engineMetricsUrl) }),
  });
  const desk = openDesk({
    agent: settings.agent,
    now,
    keys,
    readTicket: createTicketReader(settings.agent, readJson(settings.edgeKeysFile) as JSONWebKeySet),
    replays: createReplayCache(),
    dispatcher,
    metrics,
    log,
    model: watch.model,
    keepaliveMs: world.keepaliveMs ?? limits.keepaliveMs.value,
  });

  const server = createAgentServer(desk, { ready: () => watch.ready() && !desk.draining() });
  const load = (): Load => ({
    busy: desk.busy(),
    queued: dispatcher.queued(),
    serviceMs: serviceTime.mean(),
    draining: desk.draining(),
    engineReady: watch.ready(),
  });
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
    suites: [...openSuites],
    models: watch.descriptions(),
  });
  const heartbeat = createHeartbeat({
    edgeUrl: settings.edgeUrl,
    token: () => readFileSync(settings.poolTokenFile, 'utf8').trim(),
    keys,
    describe,
    load,
    outbox,
    onDrain: desk.drain,
    log,
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
  log('started');

  let stopping: Promise<void> | undefined;
  async function stop(): Promise<void> {
    log('stopping', { count: desk.busy() });
    desk.drain();
    await desk.empty(settings.drainMs);
    // Acknowledged now or sent by whoever starts next in this place.
    outbox.record({ type: 'keys', agent: settings.agent, action: 'gone' });
    await heartbeat.stop();
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
