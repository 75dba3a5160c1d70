import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { enableAac } from './audio/aac.ts';
import { type AgentOverrides, openBackend } from './backend.ts';
import type { Keys } from './identity/keys.ts';
import type { AgentContext } from './request/agent-context.ts';
import { type AgentServer, createAgentServer } from './server/serve.ts';
import { readTlsPair, rotateTls } from './server/tls.ts';
import { openServing } from './serving.ts';
import { AGENT_FLUSH_MS } from './settings/limits.ts';
import { type Settings, SettingsError } from './settings/settings.ts';
import { createStreamDoor } from './stream/door.ts';
import { registerGauges } from './telemetry/gauges.ts';
import { openUplink } from './uplink.ts';

export interface Agent {
  /** Address that it listens on. */
  readonly url: string;
  readonly keys: Keys;
  /** Takes no new work, finishes what is in flight within the drain time, closes everything. */
  stop(): Promise<void>;
}

/** Listens and returns the address. */
async function listen(server: AgentServer, { host, port, tls }: Settings): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return `${tls ? 'https' : 'http'}://${host}:${(server.address() as AddressInfo).port}`;
}

/** @throws SettingsError when the pair of the settings cannot be served. */
function openTls({ tls }: Settings, now: number) {
  if (!tls) return undefined;
  const pair = readTlsPair(tls, now);
  const names = 'AURICLE_TLS_CERTIFICATE_FILE and AURICLE_TLS_KEY_FILE';
  if (typeof pair === 'string') throw new SettingsError([`${names} are no pair to serve: ${pair}`]);
  return { files: tls, pair };
}

export const registerReadiness = (registry: Registry, ready: () => boolean): void =>
  registerGauges(registry, { auricle_agent_ready: ['1 while /readyz answers 200', () => Number(ready())] });

/** Starts an agent: keys, attestation, engine watch, server, heartbeat. Resolves when it listens. */
export async function startAgent(settings: Settings, overrides: AgentOverrides = {}): Promise<Agent> {
  if (settings.aac) enableAac();
  const tls = openTls(settings, (overrides.now ?? Date.now)());
  const backend = await openBackend(settings, overrides, () => context);
  const serving = openServing(backend, () => context);
  const context: AgentContext = serving.context;
  const { host, calls, streamMetrics } = serving;
  const { keys, watch, failures, outbox, log, workers, engine } = backend;
  let settled = false;
  const health = { ready: () => watch.ready() && settled && !context.draining(), failed: failures.list };
  registerReadiness(backend.metrics.registry, health.ready);
  const server = createAgentServer(context, health, { tls: tls?.pair });
  const serveStream = createStreamDoor(context, host, streamMetrics);
  server.on('upgrade', (request, connection, head) => void serveStream(request, connection, head));
  let url = '';
  let stopping: Promise<void> | undefined;
  const uplink = await openUplink(backend, serving, () => url);

  await Promise.all([uplink.identify(), workers?.start()]);
  await watch.look();
  watch.start();
  url = await listen(server, settings);
  const rotation =
    tls && 'setSecureContext' in server
      ? rotateTls(server, tls.files, { used: tls.pair, now: backend.now, log })
      : undefined;
  log('started');
  // It joins the roster with its first model: a request for one that is still loading waits for it.
  void Promise.resolve(backend.loader?.serving).then(() => {
    if (!stopping) uplink.start();
  });
  void Promise.resolve(backend.loader?.settled).then(() => {
    settled = true;
  });

  async function stop(): Promise<void> {
    log('stopping', { count: context.busy() + context.streams.size() });
    context.drain();
    await Promise.all([context.empty(settings.drainMs), uplink.stopJobs(settings.drainMs)]);
    await host.close(AGENT_FLUSH_MS);
    await calls.close();
    // The roster acknowledges it now, or the next agent with this state directory sends it.
    outbox.record({ type: 'keys', agent: settings.agent, action: 'gone' });
    await uplink.stop();
    watch.stop();
    rotation?.stop();
    backend.loader?.close();
    // Not awaited: Node never reports it when every process that was given a connection has ended.
    server.close();
    server.closeAllConnections();
    engine.close();
    await serving.traces?.close();
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
