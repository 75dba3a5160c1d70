import { slotsPerInstance } from '../../models/config/sequence-rules.ts';
import { Batcher, cancelled, type Network } from '../batch/batcher.ts';
import type { BatchRequest, Outcome } from '../batch/job.ts';
import { keyOf, type Mark, startWanted } from '../batch/sequence-mark.ts';
import type { VersionStatistics } from '../batch/statistics.ts';
import type { Clock } from '../clock.ts';
import { ENGINE_QUEUED_REQUESTS_MAX } from '../limits.ts';
import { refuse } from '../refuse.ts';
import type { Instance } from '../run/instance.ts';
import { type Line, Lines } from './lines.ts';
import { sequencePolicy } from './policy.ts';

/** A checked request of a sequence on its way to its model. */
export interface SequenceRequest extends Omit<BatchRequest, 'place'> {
  readonly mark: Mark;
}

interface Entry {
  readonly request: SequenceRequest;
  readonly arrivedAt: number;
  finish(outcome: Outcome): void;
  /** Called when the instance has the request: its removal is no longer ours to observe. */
  issued(): void;
}

/**
 * Sequences of one model version. Each has a slot on one instance, which holds its state; one request of it
 * at a time goes to that instance's batcher, which batches those of different sequences. `Lines` decides the
 * order; the sequencer holds the requests, sets the alarm and acts. A request that is not computed breaks its
 * sequence: later requests would continue a state without it.
 */
export class Sequencer {
  readonly #model: string;
  readonly #lines: Lines<Entry>;
  readonly #instances: readonly Instance[];
  readonly #batchers: readonly Batcher[];
  readonly #statistics: VersionStatistics;
  readonly #clock: Clock;
  /** Sequences that may have a request to send. */
  #stirred = new Set<Line<Entry>>();
  #flushing = false;
  #closing = false;
  #emptied: (() => void) | undefined;
  #alarm: { at: number; cancel: () => void } | undefined;

  constructor(network: Network) {
    const { config, instances, statistics, clock } = network;
    this.#model = config.name;
    const idleUs = config.sequence_batching?.max_sequence_idle_microseconds ?? 0;
    this.#lines = new Lines(instances.length, slotsPerInstance(config), idleUs);
    this.#instances = instances;
    const policy = sequencePolicy(config);
    this.#batchers = instances.map((instance) => new Batcher({ ...network, instances: [instance] }, policy));
    this.#statistics = statistics;
    this.#clock = clock;
  }

  get pending(): number {
    return this.#batchers.reduce((sum, batcher) => sum + batcher.pending, this.#lines.waiting);
  }

  /** Number of active sequences, including those that wait for a slot. */
  get sequences(): number {
    return this.#lines.size;
  }

  enqueue(request: SequenceRequest): Promise<Outcome> {
    const { mark, signal, timeoutUs } = request;
    const key = keyOf(mark);
    const now = this.#clock.now();
    if (this.#closing) return Promise.resolve(refuse('UNAVAILABLE', 'the model is being unloaded', 'REJECTED'));
    const known = this.#lines.find(key);
    if (known && this.#lines.isIdle(known, now)) this.#reap(known);
    if (signal?.aborted) {
      this.breakSequence(mark);
      return Promise.resolve(cancelled());
    }
    if (this.#lines.waiting >= ENGINE_QUEUED_REQUESTS_MAX)
      return Promise.resolve(refuse('UNAVAILABLE', 'Exceeds maximum queue size', 'REJECTED'));
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const leave = () => {
      const at = line?.waiting.indexOf(entry) ?? -1;
      if (line && at >= 0) this.#break(line, at, at + 1);
    };
    const entry: Entry = {
      request,
      arrivedAt: now,
      finish: resolve,
      issued: () => signal?.removeEventListener('abort', leave),
    };
    const line = this.#lines.join(key, mark, entry, now);
    if (!line) return Promise.resolve(refuse('INVALID_ARG', startWanted(mark, this.#model)));
    signal?.addEventListener('abort', leave, { once: true });
    if (timeoutUs > 0 && !line.seat) {
      this.#lines.expire(line, now + timeoutUs);
      this.#setAlarm(now + timeoutUs);
    }
    this.#stir(line);
    return promise;
  }

  /** Breaks the sequence of a request that was lost on its way and is not repeated. */
  breakSequence(mark: Mark): void {
    const line = this.#lines.find(keyOf(mark));
    if (line) this.#break(line, line.waiting.length);
  }

  /** Flushes once a turn, so that sequences that become free together form one batch. */
  #stir(line: Line<Entry>): void {
    this.#stirred.add(line);
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    const lines = [...this.#stirred];
    this.#stirred = new Set();
    for (const batcher of this.#batchers) batcher.cork();
    for (const line of lines) this.#issue(line);
    for (const batcher of this.#batchers) batcher.uncork();
    if (this.#lines.size === 0) {
      this.#alarm?.cancel();
      this.#alarm = undefined;
      this.#emptied?.();
    } else if (!this.#alarm) this.#setAlarm(this.#lines.wakeAt());
  }

  #issue(line: Line<Entry>): void {
    const { seat } = line;
    const entry = this.#lines.next(line);
    if (!seat || !entry) {
      this.#settle(line);
      return;
    }
    entry.issued();
    const { mark, ...request } = entry.request;
    const place = { ...mark, slot: seat.slot };
    void this.#batchers[seat.instance]!.enqueue({ ...request, place, arrivedAt: entry.arrivedAt }).then((outcome) => {
      this.#lines.done(line, this.#clock.now());
      // A failed network leaves the state unchanged. After any other failure the network never saw the
      // request.
      if (!outcome.ok && outcome.refusal.code !== 'INTERNAL') this.#break(line, 0);
      entry.finish(outcome);
      this.#stir(line);
    });
  }

  /**
   * Removes waiting requests from `from` to the next START, searched from `after`. Without one the sequence
   * has ended.
   */
  #break(line: Line<Entry>, from: number, after = from): void {
    const next = line.waiting.findIndex(({ request }, index) => index >= after && request.mark.start);
    const dropped = this.#lines.drop(line, from, (next < 0 ? line.waiting.length : next) - from);
    if (next < 0) this.#lines.end(line);
    for (const entry of dropped) {
      entry.issued();
      entry.finish(cancelled());
    }
    this.#stir(line);
  }

  #settle(line: Line<Entry>): void {
    const { freed, seated } = this.#lines.settle(line);
    if (freed) this.#instances[freed.instance]!.forget([freed.slot]);
    if (seated) this.#stir(seated);
  }

  /** Deadlines only move back while the alarm is set, so it may fire early, never late. */
  #setAlarm(at: number | undefined): void {
    if (at === undefined || (this.#alarm && this.#alarm.at <= at)) return;
    this.#alarm?.cancel();
    this.#alarm = { at, cancel: this.#clock.alarm(at, () => this.#wake()) };
  }

  #reap(line: Line<Entry>): void {
    this.#statistics.expiredSequences++;
    this.#lines.end(line);
    this.#settle(line);
  }

  #wake(): void {
    this.#alarm = undefined;
    const now = this.#clock.now();
    for (const line of this.#lines.idle(now)) this.#reap(line);
    for (const line of this.#lines.expired(now)) {
      const late = this.#lines.drop(line, 0, line.waiting.length);
      this.#lines.end(line);
      const text = 'timeout of the corresponding sequence has been expired';
      for (const entry of late) {
        entry.issued();
        entry.finish(refuse('UNAVAILABLE', text, 'REJECTED'));
      }
      this.#stir(line);
    }
    this.#setAlarm(this.#lines.wakeAt());
  }

  /** Stops delaying batches: no further sequences will come. */
  hasten(): void {
    for (const batcher of this.#batchers) batcher.hasten();
  }

  /** Drains queued and running requests and ends all sequences. */
  async close(): Promise<void> {
    this.#closing = true;
    this.hasten();
    for (const line of this.#lines.all()) {
      this.#lines.end(line);
      this.#stir(line);
    }
    if (this.#lines.size > 0) {
      await new Promise<void>((resolve) => {
        this.#emptied = resolve;
      });
    }
    this.#alarm?.cancel();
    await Promise.all(this.#batchers.map((batcher) => batcher.close()));
  }
}
