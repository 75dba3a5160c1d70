// A stream worker: a process that carries live streams of its agent. The agent admits a stream and sends its connection
// and keys; the worker has no identity, no private key and no port of its own.
import type { Socket } from 'node:net';
import process from 'node:process';
import { Registry } from 'prom-client';
import { refuse } from '../../../../shared/refusal.ts';
import { no } from '../../../../shared/result.ts';
import type { Recogniser } from '../asr/segment.ts';
import { enableAac } from '../audio/aac.ts';
import { openEngine } from '../engine/open-engine.ts';
import { createRecognisers, type RecogniserSource } from '../models/recogniser.ts';
import { plainRefusal } from '../request/admit.ts';
import { createLog } from '../telemetry/log.ts';
import { createUtteranceHistogram } from '../telemetry/metrics.ts';
import { systemClock } from './clock.ts';
import { createStreamHost, type StreamHost, type StreamOutcome } from './host.ts';
import { SEQUENCE_ENDS_CONCURRENT_MAX } from './limits.ts';
import { createLiveParts } from './parts.ts';
import { refuseUpgrade } from './refuse-upgrade.ts';
import type { FromWorker, StreamMessage, ToWorker, WorkerSettings } from './worker-messages.ts';

// The decoder packages print a line for each damaged frame.
console.error = () => {};
console.warn = () => {};

interface Carried {
  readonly message: StreamMessage;
  readonly connection: Socket | undefined;
  readonly draining: AbortController;
  readonly stopped: AbortController;
}

const send = (message: FromWorker) => void process.send?.(message);

/** Recognisers by revision. */
let recognisers = new Map<string, Promise<Recogniser>>();

/** Loads new revisions and drops those that are not listed. */
function loadModels(sources: readonly RecogniserSource[]): void {
  const load = createRecognisers();
  recognisers = new Map(
    sources.map((source) => {
      const { revision } = source.description;
      const recogniser = recognisers.get(revision) ?? load(source);
      // A stream of this revision gets the error.
      recogniser.catch(() => {});
      return [revision, recogniser];
    }),
  );
}

function startWorker({ agent, engine: engineSettings, slots, streams, keepaliveMs, aac }: WorkerSettings) {
  if (aac) enableAac();
  const registry = new Registry();
  const engine = openEngine(engineSettings, slots + SEQUENCE_ENDS_CONCURRENT_MAX);
  const clock = systemClock;
  const utterances = createUtteranceHistogram(registry);
  const host: StreamHost = createStreamHost({
    agent,
    keepaliveMs,
    // The agent counts open streams.
    live: createLiveParts({ engine, clock, slots, capacity: streams, registry, open: () => 0 }),
    log: createLog(agent, clock.now, (line) => void process.stdout.write(line)),
    onUtterance: (seconds) => utterances.observe(seconds),
  });
  const carried = new Map<number, Carried>();

  async function serve({ message, connection, draining, stopped }: Carried): Promise<StreamOutcome> {
    if (!connection) return no(refuse('pool_lost', undefined, 'edge connection closed'));
    const { request, head, ticket, description, live, detector, requestKey, answerKey } = message;
    const recogniser = await recognisers.get(description.revision)?.catch(() => undefined);
    if (!recogniser) {
      const refusal = refuse('misdirected', undefined, 'model in a stream worker');
      const { status, body } = plainRefusal(refusal);
      refuseUpgrade(connection, status, body);
      return no(refusal);
    }
    return host.serve({
      ...{ request, connection, ticket, detector, requestKey, answerKey },
      head: Buffer.from(head),
      model: { description, recogniser, ...(live && { live }) },
      draining: draining.signal,
      stopped: stopped.signal,
    });
  }

  return {
    take(message: StreamMessage, connection: Socket | undefined): void {
      const { id } = message;
      connection?.on('error', () => connection.destroy());
      carried.set(id, { message, connection, draining: new AbortController(), stopped: new AbortController() });
      send({ type: 'taken', id });
    },
    async go(id: number): Promise<void> {
      const stream = carried.get(id);
      if (!stream) return;
      const outcome = await serve(stream);
      carried.delete(id);
      send({ type: 'ended', id, outcome });
    },
    drain: (id: number) => carried.get(id)?.draining.abort(),
    stop: (id: number) => carried.get(id)?.stopped.abort(),
    async export(id: number): Promise<void> {
      send({ type: 'metrics', id, metrics: await registry.getMetricsAsJSON() });
    },
    async close(milliseconds: number): Promise<void> {
      await host.close(milliseconds);
      engine.close();
      process.disconnect();
    },
  };
}

let worker: ReturnType<typeof startWorker> | undefined;

process.on('message', (message: ToWorker, connection: Socket | undefined) => {
  if (message.type === 'start') {
    worker = startWorker(message.settings);
    return send({ type: 'ready' });
  }
  if (message.type === 'models') return loadModels(message.sources);
  if (message.type === 'stream') return worker?.take(message, connection);
  if (message.type === 'metrics') return void worker?.export(message.id);
  if (message.type === 'close') return void worker?.close(message.milliseconds);
  return void worker?.[message.type](message.id);
});
// The agent stops its workers: a signal to the whole process group must not end streams that it drains.
process.on('SIGTERM', () => {});
process.on('SIGINT', () => {});
process.on('disconnect', () => process.exit(0));
