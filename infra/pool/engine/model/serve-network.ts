import { Batcher, type Network } from '../batch/batcher.ts';
import type { BatchRequest, Outcome } from '../batch/job.ts';
import { checkMark, type Mark } from '../batch/sequence-mark.ts';
import { refuse } from '../refuse.ts';
import { Sequencer } from '../sequence/sequencer.ts';
import { type Call, checkRequest } from './check-request.ts';
import { createLeases } from './leases.ts';
import type { Answer, Served } from './served.ts';

interface Scheduler {
  readonly pending: number;
  readonly sequences: number | undefined;
  enqueue(request: BatchRequest, call: Call): Promise<Outcome>;
  breakSequence(mark: Mark): void;
  /** Stops delaying batches: no further requests will come. */
  hasten(): void;
  close(): Promise<void>;
}

function schedulerOf(network: Network): Scheduler {
  const { config } = network;
  if (!config.sequence_batching) {
    const batcher = new Batcher(network);
    return {
      get pending() {
        return batcher.pending;
      },
      sequences: undefined,
      enqueue: (request) => batcher.enqueue(request),
      breakSequence: () => {},
      hasten: () => batcher.hasten(),
      close: () => batcher.close(),
    };
  }
  const sequencer = new Sequencer(network);
  return {
    get pending() {
      return sequencer.pending;
    },
    get sequences() {
      return sequencer.sequences;
    },
    async enqueue(request, { mark: given }) {
      const mark = checkMark(config, given, request.size);
      return mark.ok ? sequencer.enqueue({ ...request, mark: mark.value }) : refuse('INVALID_ARG', mark.refusal.reason);
    },
    breakSequence: (mark) => sequencer.breakSequence(mark),
    hasten: () => sequencer.hasten(),
    close: () => sequencer.close(),
  };
}

/** Serves a network with its instances, which take `memoryBytes`. */
export function serveNetwork(version: number, network: Network, memoryBytes: number): Served {
  const { config, statistics, clock } = network;
  const scheduler = schedulerOf(network);
  const leases = createLeases();
  const takesSequences = config.sequence_batching !== undefined;

  async function infer(call: Call): Promise<Answer> {
    const began = clock.now();
    const elapsedNs = () => (clock.now() - began) * 1000;
    const checked = checkRequest(config, call);
    if (!checked.ok) {
      statistics.failed('OTHER', elapsedNs());
      return refuse('INVALID_ARG', checked.refusal.reason);
    }
    const { inputs, priority, timeoutUs, signal } = call;
    const outcome = await scheduler.enqueue({ ...checked.value, inputs, priority, timeoutUs, signal }, call);
    if (outcome.ok) statistics.succeeded(checked.value.size, elapsedNs(), outcome.value.durations);
    else statistics.failed(outcome.refusal.failure, elapsedNs());
    return outcome;
  }

  return {
    name: config.name,
    version,
    config,
    statistics,
    get pending() {
      return scheduler.pending;
    },
    get sequences() {
      return scheduler.sequences;
    },
    takesSequences,
    memoryBytes,
    infer,
    lease() {
      leases.take();
      const breakSequence = (mark: Mark) => scheduler.breakSequence(mark);
      return { takesSequences, breakSequence, infer, release: leases.release };
    },
    async close() {
      scheduler.hasten();
      await leases.drained();
      await scheduler.close();
    },
  };
}
