import type { JSONWebKeySet } from 'jose';
import type { Backend } from './backend.ts';
import { stepSlotsOf } from './backend.ts';
import { createCalls } from './engine/calls/calls.ts';
import { noTensors, openClient } from './engine/calls/client.ts';
import { createAttest } from './identity/attest.ts';
import { requestFromAuthority } from './identity/release-authority.ts';
import { requestFromVault } from './identity/release-vault.ts';
import { createZoneKeyring } from './identity/zone-key.ts';
import { LiveBook } from './live-counts/book.ts';
import type { ServedModel } from './models/served-model.ts';
import { type AgentContext, openAdmission } from './request/agent-context.ts';
import { createReplayCache, createTicketReader } from './request/ticket.ts';
import { createSessionReader } from './server/sealed-session.ts';
import { readJson } from './settings/settings.ts';
import { createStorage } from './storage/storage.ts';
import { systemClock } from './stream/clock.ts';
import { createStreamHost, type StreamHost } from './stream/host.ts';
import { createLiveParts } from './stream/parts.ts';
import { openTraces } from './telemetry/traces.ts';

/** Returns the keys of the zone; `undefined` where no authority releases them. */
function openKeyring({ settings, keys, poolToken, outbox, now }: Backend) {
  const { agent, release, zone } = settings;
  if (!release) return undefined;
  const onReleased = (kids: readonly string[]) => {
    for (const kid of kids) {
      outbox.record({ type: 'keys', agent, action: 'setup', detail: `zone ${zone}, key ${kid}` });
    }
  };
  const request =
    'vault' in release
      ? requestFromVault({ vault: release.vault, agent, attest: createAttest(settings.attestation), now })
      : requestFromAuthority({ url: release.url, zone, keys, token: poolToken.read, now });
  return createZoneKeyring({ zoneKeysFile: release.zoneKeysFile, zone, request, onReleased });
}

/** Returns the served model that detects languages. */
function findDetector({ descriptions, model }: Backend): ServedModel | undefined {
  const found = descriptions().flatMap(({ detects, name, revision }) => (detects && model(name, revision)) || []);
  return found[0];
}

/** Opens everything that requests and streams need of an agent. */
export function openServing(backend: Backend, context: () => AgentContext) {
  const { settings, now, log, keepaliveMs, workers, engine, keys, watch, serviceTime, dispatcher, metrics } = backend;
  const { agent, slots, streams } = settings;
  const client = settings.engine.kind === 'kserve' ? openClient(settings.engine.url) : noTensors;
  const calls = createCalls({ client, dispatcher, levels: watch.levels, now });
  const live = createLiveParts({
    engine,
    clock: backend.clock ?? { ...systemClock, now },
    slots: stepSlotsOf(settings),
    capacity: streams,
    registry: metrics.registry,
    open: () => context().streams.size(),
  });
  const host: StreamHost =
    workers ?? createStreamHost({ agent, keepaliveMs, live, log, onUtterance: metrics.utterance });
  const keyring = openKeyring(backend);
  const edgeKeys = readJson(settings.edgeKeysFile) as JSONWebKeySet;
  const book = new LiveBook();
  const traces = openTraces(settings.traces, settings, { now, log });
  const opened = openAdmission({
    ...{
      agent,
      now,
      keys,
      dispatcher,
      calls,
      metrics,
      log,
      degrader: backend.degrader,
      results: backend.results,
      model: backend.model,
      detector: () => findDetector(backend),
      lease: backend.lease,
      keepaliveMs,
      book,
      tracer: traces,
      logRequests: settings.logRequests,
    },
    readTicket: createTicketReader(agent, edgeKeys),
    readSession: createSessionReader(agent, edgeKeys, keys),
    replays: createReplayCache(),
    pace: () => ({ serviceMs: serviceTime.mean(), slots, urgentSlots: serviceTime.urgentSlots }),
    streamsMax: streams,
    engineReady: watch.ready,
    files: keyring && { keyring, storage: createStorage() },
  });
  return { context: opened, host, streamMetrics: live.metrics, calls, keyring, book, traces };
}

export type Serving = ReturnType<typeof openServing>;
