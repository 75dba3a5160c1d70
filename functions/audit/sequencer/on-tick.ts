// Every second, and a little less often while nothing comes: take what is waiting into the logs of all regions.
import { eventId } from '../../../shared/audit/event-id.ts';
import { failedIn, type LogContext } from '../context/log-context.ts';
import { LOG_TICK_MS } from '../limits.ts';
import { readDiverged } from '../log/diverged.ts';
import { lockName } from '../log/log-names.ts';
import { isFull, type LogState } from '../log/log-state.ts';
import type { NotifyingStore } from '../log/notifying-store.ts';
import { isWithin, openRounds } from '../log/rounds.ts';
import { LifeWatch } from './lives.ts';
import { Sequencer } from './sequencer.ts';

/** Time a vanished sequencer keeps others from writing: the shortest lease that storage grants. */
export const LOG_LEASE_S = 15;
/** Commits of one tick under constant backlog: then other work gets its turn. */
const ROUNDS_PER_TICK_MAX = 8;
/**
 * Longest pause of an idle sequencer, for deliveries to other processes; deliveries to its own process wake
 * it.
 */
const WRITER_IDLE_MS = 3_000;
/** Age at which a sequencer renews its lease. */
export const LOG_LEASE_RENEW_MS = 5_000;

/** Lost rounds in a row before a warning: two ticks of them. */
const BEATEN_MANY = 2 * ROUNDS_PER_TICK_MAX;

/** Limits a message to one a minute. */
class OncePerMinute {
  readonly #now: () => number;
  #at = Number.NEGATIVE_INFINITY;

  constructor(now: () => number) {
    this.#now = now;
  }

  due(): boolean {
    const now = this.#now();
    if (isWithin(now, this.#at, LOG_TICK_MS)) return false;
    this.#at = now;
    return true;
  }
}

/** Writes the log of one zone under a lease. The lease only saves work; correctness does not depend on it. */
class Writer {
  readonly #context: LogContext;
  readonly #zone: string;
  readonly #sequencer: Sequencer;
  readonly #watch = new LifeWatch();
  readonly #silentLines: OncePerMinute;
  readonly #divergedLines: OncePerMinute;
  readonly #clockLines: OncePerMinute;
  /** Rounds in a row. */
  #beaten = 0;
  #lease: { readonly id: string; readonly at: number } | undefined;

  constructor(context: LogContext, zone: string) {
    this.#context = context;
    this.#zone = zone;
    const oncePerMinute = () => new OncePerMinute(context.now);
    [this.#silentLines, this.#divergedLines, this.#clockLines] = [oncePerMinute(), oncePerMinute(), oncePerMinute()];
    const newId = () => eventId(context.now(), crypto.getRandomValues(new Uint8Array(10)));
    const { store, base, signers, now } = context;
    this.#sequencer = new Sequencer({ store, base, signers, now, zone, newId });
  }

  /** Returns whether anything was written. */
  async tick(): Promise<boolean> {
    const zone = this.#zone;
    if (!(await this.#hold())) return false;
    for (let rounds = 0; rounds < ROUNDS_PER_TICK_MAX; rounds += 1) {
      const { kind, entries, held, gaps, unreadable, state, wrong } = await this.#sequencer.round();
      this.#logBeaten(kind === 'beaten');
      if (kind === 'diverged') {
        await this.#logDiverged();
        return false;
      }
      if (held > 0) this.#context.log({ what: 'held', zone, held });
      if (gaps > 0) this.#context.log({ what: 'gap', zone, gaps });
      if (unreadable > 0) this.#context.log({ what: 'unreadable', zone, unreadable });
      if (wrong !== undefined && this.#clockLines.due()) this.#context.log({ what: 'clock', zone, detail: wrong });
      this.#logSilent(state);
      if (entries > 0) this.#context.log({ what: 'committed', zone, entries });
      if (kind === 'idle' || kind === 'clock') return rounds > 0 || held > 0;
    }
    return true;
  }

  /** Once a minute: an alarm is a rule on this line. */
  #logSilent(state: LogState | undefined): void {
    if (!state || !this.#silentLines.due()) return;
    const silent = this.#watch.silent(state, this.#context.now());
    if (silent > 0) this.#context.log({ what: 'silent', zone: this.#zone, silent });
    if (isFull(state)) this.#context.log({ what: 'full', zone: this.#zone });
  }

  /**
   * Losing a commit race now and then is normal; losing every one while holding the lease means this writer
   * is stuck.
   */
  #logBeaten(beaten: boolean): void {
    this.#beaten = beaten ? this.#beaten + 1 : 0;
    if (this.#beaten > 0 && this.#beaten % BEATEN_MANY === 0) this.#context.log({ what: 'beaten', zone: this.#zone });
  }

  /** Logs a divergence once a minute until an operator removes the mark. */
  async #logDiverged(): Promise<void> {
    if (!this.#divergedLines.due()) return;
    const { store, log } = this.#context;
    const mark = await readDiverged(store, this.#zone);
    if (mark) log({ what: 'diverged', zone: this.#zone, detail: `stopped: ${mark.witness} ${mark.why}` });
  }

  /** Acquires or renews the lease. */
  async #hold(): Promise<boolean> {
    const { store, now } = this.#context;
    const at = now();
    if (this.#lease && isWithin(at, this.#lease.at, LOG_LEASE_RENEW_MS)) return true;
    const name = lockName(this.#zone);
    const id = await store.hold(name, LOG_LEASE_S, this.#lease?.id);
    this.#lease = id === undefined ? undefined : { id, at };
    return id !== undefined;
  }

  async release(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease) await this.#context.store.release(lockName(this.#zone), lease.id);
  }
}

export interface Ticker {
  tick(): Promise<void>;
  /** So that the next writer need not wait. */
  release(): Promise<void>;
}

export function openTicker(context: LogContext & { readonly store: NotifyingStore }): Ticker {
  const writers = new Map(context.zones.map((zone) => [zone, new Writer(context, zone)]));
  return {
    tick: openRounds({
      zones: [...writers.keys()],
      longestMs: WRITER_IDLE_MS,
      now: context.now,
      changes: (zone) => context.store.changes('intake', zone),
      work: async (zone) => (await writers.get(zone)?.tick()) ?? false,
      failed: (zone, error) => failedIn(context.log, zone)(error),
    }),
    async release() {
      await Promise.allSettled([...writers.values()].map((writer) => writer.release()));
    },
  };
}
