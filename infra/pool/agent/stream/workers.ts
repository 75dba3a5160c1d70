import { backOffMs } from '../../../../shared/back-off.ts';
import { RECONNECT_MAX_MS } from '../../../../shared/pool/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no } from '../../../../shared/result.ts';
import type { ServedModel } from '../models/served-model.ts';
import { plainRefusal } from '../request/admit.ts';
import { RECONNECT_MS } from '../settings/limits.ts';
import type { Log } from '../telemetry/log.ts';
import type { ExportedMetrics } from '../telemetry/metrics.ts';
import type { AdmittedStream, StreamHost, StreamOutcome } from './host.ts';
import { plainConnection } from './plain-connection.ts';
import { refuseUpgrade } from './refuse-upgrade.ts';
import type { ToWorker, WorkerSettings } from './worker-messages.ts';
import { WorkerProcess } from './worker-process.ts';

export interface StreamWorkersOptions {
  readonly count: number;
  readonly settings: WorkerSettings;
  readonly log: Log;
}

/**
 * Carries live streams in processes of their own, so that hearing, decoding and sealing use every core. A new stream
 * goes to the worker with the fewest. A worker that ends takes its streams along and is started again.
 */
export class StreamWorkers implements StreamHost {
  readonly #options: StreamWorkersOptions;
  readonly #workers = new Set<WorkerProcess>();
  #models: ToWorker = { type: 'models', sources: [] };
  #failures = 0;
  #closing = false;

  constructor(options: StreamWorkersOptions) {
    this.#options = options;
  }

  /** Resolves when every worker runs. Rejects when one ends before. */
  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.count }, () => this.#start().ready));
  }

  /** Has every worker load these models. */
  prepare(models: readonly ServedModel[]): void {
    const sources = models.flatMap(({ source, live }) => (source && live ? [source] : []));
    this.#models = { type: 'models', sources };
    for (const worker of this.#workers) worker.send(this.#models);
  }

  async serve(stream: AdmittedStream): Promise<StreamOutcome> {
    const connection = await plainConnection(stream.connection);
    const [idlest] = [...this.#workers].sort((a, b) => a.size() - b.size());
    if (idlest) return idlest.serve({ ...stream, connection });
    const refusal = refuse('pool_busy', undefined, 'stream workers start again');
    const { status, body } = plainRefusal(refusal);
    refuseUpgrade(connection, status, body);
    return no(refusal);
  }

  async metrics(): Promise<ExportedMetrics[]> {
    const read = await Promise.all([...this.#workers].map((worker) => worker.metrics()));
    return read.filter((one) => one !== undefined);
  }

  async close(milliseconds: number): Promise<void> {
    this.#closing = true;
    await Promise.all([...this.#workers].map((worker) => worker.close(milliseconds)));
  }

  #start(): WorkerProcess {
    const worker = new WorkerProcess(this.#options.settings, (lost) => {
      this.#workers.delete(worker);
      if (this.#closing) return;
      this.#options.log('worker-lost', { count: lost });
      const bounds = { firstMs: RECONNECT_MS, maxMs: RECONNECT_MAX_MS };
      const pauseMs = backOffMs(this.#failures++, bounds, Math.random());
      setTimeout(() => this.#closing || this.#start(), pauseMs).unref();
    });
    worker.send(this.#models);
    worker.ready.then(
      () => {
        this.#failures = 0;
      },
      () => {},
    );
    this.#workers.add(worker);
    return worker;
  }
}
