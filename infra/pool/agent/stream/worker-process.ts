import { type ChildProcess, fork } from 'node:child_process';
import { Socket } from 'node:net';
import { HEARTBEAT_MS } from '../../../../shared/pool/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no } from '../../../../shared/result.ts';
import { AGENT_FLUSH_MS } from '../settings/limits.ts';
import type { ExportedMetrics } from '../telemetry/metrics.ts';
import type { AdmittedStream, StreamOutcome } from './host.ts';
import type { FromWorker, ToWorker, WorkerSettings } from './worker-messages.ts';

interface Carried {
  readonly stream: AdmittedStream;
  readonly end: (outcome: StreamOutcome) => void;
  /** The worker has the connection. */
  taken: boolean;
}

const ENTRY = new URL('./worker.ts', import.meta.url);

/** Returns the options of this process without its inspector: two processes cannot listen on one port. */
const execArgv = () => process.execArgv.filter((option) => !option.startsWith('--inspect'));

/** A stream worker, as the agent sees it. */
export class WorkerProcess {
  /** Resolves when the worker runs. Rejects when it ends before. */
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  readonly #streams = new Map<number, Carried>();
  readonly #scrapes = new Map<number, (metrics: ExportedMetrics | undefined) => void>();
  #lastId = 0;

  /** `onExit` is called when the process has ended, with the number of streams that were lost. */
  constructor(settings: WorkerSettings, onExit: (streams: number) => void) {
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.ready.catch(() => {});
    this.#child = fork(ENTRY, [], { serialization: 'advanced', execArgv: execArgv() });
    const exited = Promise.withResolvers<void>();
    this.#exited = exited.promise;
    const onEnd = () => {
      ready.reject(new Error('a stream worker ended'));
      const lost = this.#streams.size;
      this.#lose();
      exited.resolve();
      onExit(lost);
    };
    this.#child.on('message', (message: FromWorker) => {
      if (message.type === 'ready') ready.resolve();
      else this.#receive(message);
    });
    // A process without an id was never started; of any other, `exit` follows a message that could not be sent.
    this.#child.on('error', () => this.#child.pid === undefined && onEnd());
    this.#child.on('exit', onEnd);
    this.send({ type: 'start', settings });
  }

  /** Streams that the worker carries. */
  size(): number {
    return this.#streams.size;
  }

  send(message: ToWorker, connection?: Socket): void {
    this.#child.send(message, connection);
  }

  /** Hands a stream over. Resolves with its outcome: `pool_lost` when the worker ends before. */
  serve(stream: AdmittedStream): Promise<StreamOutcome> {
    const { draining, stopped } = stream;
    const id = ++this.#lastId;
    const drain = () => this.send({ type: 'drain', id });
    const stop = () => this.send({ type: 'stop', id });
    const outcome = new Promise<StreamOutcome>((end) => this.#streams.set(id, { stream, end, taken: false }));
    this.#handOver(stream, id);
    if (draining.aborted) drain();
    if (stopped.aborted) stop();
    draining.addEventListener('abort', drain, { once: true });
    stopped.addEventListener('abort', stop, { once: true });
    return outcome.finally(() => {
      this.#streams.delete(id);
      draining.removeEventListener('abort', drain);
      stopped.removeEventListener('abort', stop);
    });
  }

  /** Returns `undefined` when the worker does not answer in time. */
  metrics(): Promise<ExportedMetrics | undefined> {
    const id = ++this.#lastId;
    return new Promise<ExportedMetrics | undefined>((resolve) => {
      this.#scrapes.set(id, resolve);
      this.send({ type: 'metrics', id });
      setTimeout(resolve, HEARTBEAT_MS, undefined).unref();
    }).finally(() => this.#scrapes.delete(id));
  }

  /** Resolves when the process has ended, after `milliseconds` and a grace period by force. */
  async close(milliseconds: number): Promise<void> {
    this.send({ type: 'close', milliseconds });
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), milliseconds + AGENT_FLUSH_MS);
    await this.#exited;
    clearTimeout(kill);
  }

  #handOver(stream: AdmittedStream, id: number): void {
    const { request, connection, head, ticket, model, detector, requestKey, answerKey } = stream;
    const { description, live } = model;
    const { method, headers } = request;
    const rest: Buffer | null = connection.read();
    const message: ToWorker = {
      ...{ type: 'stream', id, ticket, description, live, detector, requestKey, answerKey },
      request: { method, headers },
      head: rest ? Buffer.concat([head, rest]) : head,
    };
    this.send(message, connection instanceof Socket ? connection : undefined);
  }

  #receive(message: Exclude<FromWorker, { type: 'ready' }>): void {
    if (message.type === 'metrics') {
      this.#scrapes.get(message.id)?.(message.metrics);
      return;
    }
    const carried = this.#streams.get(message.id);
    if (message.type === 'ended') carried?.end(message.outcome);
    else if (carried) {
      // Node has closed the agent's own handle: whatever the edge sends now reaches the worker.
      carried.taken = true;
      this.send({ type: 'go', id: message.id });
    }
  }

  #lose(): void {
    for (const scraped of this.#scrapes.values()) scraped(undefined);
    for (const { stream, end, taken } of this.#streams.values()) {
      if (!taken) stream.connection.destroy();
      end(no(refuse('pool_lost', undefined, 'stream worker ended')));
    }
  }
}
