// Writes the logs of one zone. Several writers may run: a commit is a compare-and-swap of the log's state.
// Writes before it have no effect without it, and any process can repeat the steps after it.
import { originOfLog } from '../../../shared/audit/delivery.ts';
import { INTAKE_LIST_MAX, LOG_CLOCK_MS } from '../../../shared/audit/limits.ts';
import type { Signer } from '../../../shared/audit/note.ts';
import { equalBytes } from '../../../shared/audit/tree.ts';
import { outboxOf, pickWaiting } from '../intake/pick-waiting.ts';
import { readWaiting } from '../intake/read-waiting.ts';
import { LOG_TICK_MS } from '../limits.ts';
import { divergedName, recordName, sidecarName, stateName, yearOf } from '../log/log-names.ts';
import { encodeState, freshState, isFull, type LogState, readState } from '../log/log-state.ts';
import type { LogStore } from '../log/log-store.ts';
import { type Place, publishedSize } from '../log/publish-checkpoint.ts';
import { RightEdge } from '../log/right-edge.ts';
import { loadEdge } from './load-edge.ts';
import { dropPartials, loadAgain, publish, redoCommit } from './publish.ts';
import { mayRepeat, RecentIds } from './repeats.ts';
import { COMMIT_ENTRIES_MAX, closing, type Sequenced, sequence } from './sequence.ts';
import { packRecord } from './write-record.ts';

/** Deliveries that one commit reads; the others wait for the next, and each outbox has its turn. */
const INTAKE_READS_PER_COMMIT_MAX = 256;

export interface SequencerParts {
  readonly store: LogStore;
  /** Signers of the log of that name. */
  signers(origin: string): readonly Signer[];
  readonly zone: string;
  /** Prefix of the names of logs. */
  readonly base: string;
  /** Milliseconds since 1970. */
  now(): number;
  newId(): string;
}

/**
 * `idle`: nothing to do. `committed`: entries were added and published. `beaten`: another writer won, or the
 * outcome is unknown. `clock`: the last entry is not in the past, or this clock differs from storage's; a
 * late time could not be taken back. `diverged`: nothing is written until an operator looks (`diverged.ts`).
 */
export interface Round {
  readonly kind: 'idle' | 'committed' | 'beaten' | 'clock' | 'diverged';
  readonly entries: number;
  readonly held: number;
  /** Entries that say that others are missing. */
  readonly gaps: number;
  /** Unreadable deliveries that were set aside. */
  readonly unreadable: number;
  /** The log as it was found. */
  readonly state?: LogState;
  /** The fault of a clock that lasts longer than a minute. */
  readonly wrong?: string;
}

const nothing = (kind: Round['kind']): Round => ({ kind, entries: 0, held: 0, gaps: 0, unreadable: 0 });

interface Opened {
  readonly place: Place;
  readonly state: LogState;
  readonly version: string;
}

/** Prefix of the name of an outbox in the intake: base64url. */
const NAME_BEGINS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

export class Sequencer {
  readonly #parts: SequencerParts;
  /** The edge at the end of the last round, which that round has read back. */
  #edge: { readonly origin: string; readonly edge: RightEdge } | undefined;
  /** The last published checkpoint, cached. */
  #published: { readonly origin: string; readonly size: number } | undefined;

  readonly #recent = new RecentIds();
  /** The outbox that was looked at last. */
  #turn: string | undefined;
  /** Start of the listed names when one list does not hold all. */
  #page = 0;

  constructor(parts: SequencerParts) {
    this.#parts = parts;
  }

  /** Takes what is waiting into the log. Throws when storage fails, or when something is wrong with the log. */
  async round(): Promise<Round> {
    const { store, zone, now, newId } = this.#parts;
    const opened = await this.#open();
    if ('kind' in opened) return opened;
    const { state } = opened;
    if (!(await this.#finish(opened))) return nothing('beaten');
    const listed = await this.#listed();
    const quiet = Math.abs(now() - state.last) < LOG_TICK_MS;
    if (listed.length === 0 && state.size > 0 && quiet) return { ...nothing('idle'), state };
    const { names } = pickWaiting(listed, COMMIT_ENTRIES_MAX, INTAKE_READS_PER_COMMIT_MAX, this.#turn);
    const { waiting, unreadable, last } = await readWaiting(store, names);
    this.#turn = last === undefined ? this.#turn : outboxOf(last);
    const at = now();
    const clock = this.#clockOf(at, state.last);
    if (clock) return clock;
    const full = isFull(state);
    if (waiting.some(({ received }) => mayRepeat(received.producer))) await this.#recent.load(store, zone, state);
    const next = sequence(state, waiting, { now: at, newId, full, isKnown: (id) => this.#recent.has(id) });
    const done = next.entries.length === 0 || (await this.#commit(opened, next, at));
    if (!done) return nothing('beaten');
    await Promise.all(next.used.map((name) => store.remove('intake', name)));
    const { entries, held, gaps } = next;
    const kind = entries.length > 0 ? 'committed' : 'idle';
    return { kind, entries: entries.length, held, gaps, unreadable, state };
  }

  /** Lists waiting deliveries, from another outbox each time when one list does not hold all. */
  async #listed(): Promise<readonly string[]> {
    const { store, zone } = this.#parts;
    const most = INTAKE_LIST_MAX;
    const names = await store.list('intake', `${zone}/`, most);
    if (names.length < most) return names;
    this.#page = (this.#page + 1) % NAME_BEGINS.length;
    const more = await store.list('intake', `${zone}/${NAME_BEGINS[this.#page]}`, most);
    return [...new Set([...names, ...more])];
  }

  /** Nothing may be written that says that it is `at`. */
  #clockOf(at: number, last: number): Round | undefined {
    const off = at - (this.#parts.store.clock?.() ?? at);
    const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;
    if (Math.abs(off) > LOG_CLOCK_MS) {
      const direction = off > 0 ? 'ahead of' : 'behind';
      return {
        ...nothing('clock'),
        wrong: `the functions' clock is ${seconds(Math.abs(off))} ${direction} that of storage`,
      };
    }
    if (at > last) return undefined;
    return {
      ...nothing('clock'),
      ...(last - at > LOG_CLOCK_MS && { wrong: `the last entry is ${seconds(last - at)} ahead` }),
    };
  }

  /** Returns the open log, or the result of the round if a year was just opened or closed. */
  async #open(): Promise<Opened | Round> {
    const { store, zone, base, now } = this.#parts;
    const name = stateName(zone);
    const [stored, mark] = await Promise.all([store.read('state', name), store.read('state', divergedName(zone))]);
    if (mark) return nothing('diverged');
    const at = now();
    const clock = this.#clockOf(at, Number.NEGATIVE_INFINITY);
    if (clock) return clock;
    const year = yearOf(at);
    const begin = (one: number, before?: LogState) =>
      encodeState(freshState(originOfLog(base, zone, one), one, before));
    if (!stored) {
      await store.create('state', name, begin(year));
      return nothing('beaten');
    }
    const state = readState(stored.bytes);
    const opened = { place: this.#placeOf(state), state, version: stored.version };
    // Some writers' clocks are behind: years are only ever gone on from.
    if (state.year >= year && !state.closed) return opened;
    // A log is published to its end before the next one begins; later rounds do not look at it.
    if (!(await this.#finish(opened))) return nothing('beaten');
    // A year without a log is passed over only where two clocks say that it has passed.
    const next = store.clock?.() === undefined ? state.year + 1 : Math.max(year, state.year + 1);
    if (state.closed) await store.replace('state', name, begin(next, state), stored.version);
    else await this.#close(opened, at);
    return nothing('beaten');
  }

  #placeOf({ origin, year }: LogState): Place {
    const { store, signers, zone } = this.#parts;
    return { store, zone, year, signers: signers(origin) };
  }

  async #close(opened: Opened, at: number): Promise<void> {
    const { newId } = this.#parts;
    if (at > opened.state.last) await this.#commit(opened, closing(opened.state, at, newId), at, true);
  }

  /** The writer of the last commit may have crashed before it published. */
  async #finish({ place, state }: Opened): Promise<boolean> {
    if (state.size === 0) return true;
    const known = this.#published?.origin === state.origin && this.#published.size >= state.size;
    if (known || (await publishedSize(place)) >= state.size) {
      this.#published = { origin: state.origin, size: state.size };
      return true;
    }
    return this.#show(place, state, await redoCommit(place, state));
  }

  async #commit({ place, state, version }: Opened, next: Sequenced, now: number, closed = false): Promise<boolean> {
    const { store, zone, year } = place;
    const edge = await this.#edgeOf(place, state);
    if (!edge) return false;
    for (const entry of next.entries) edge.append(entry);
    const [size, root] = [edge.size, edge.root()];
    const { upTo, tseq, lives, late } = next;
    const before = { size: state.size, root: state.root };
    const changed: LogState = {
      ...state,
      size,
      root,
      before,
      last: now,
      upTo,
      tseq,
      lives,
      late,
      ...(closed && { closed }),
    };
    // A record of that name leads to that root, whichever writer made it.
    await store.create('log', recordName(zone, year, size, root), packRecord(state.size, next.entries));
    if (next.hidden.some((one) => one !== null)) {
      const bytes = new TextEncoder().encode(JSON.stringify({ v: 1, from: state.size, hidden: next.hidden }));
      await store.create('sidecar', sidecarName(zone, year, state.size, { size, root }), bytes);
    }
    // The commit. After a "no" and after a failure alike, only the state itself can tell whether it happened.
    if (!(await store.replace('state', stateName(zone), encodeState(changed), version))) return false;
    return this.#show(place, changed, edge.files());
  }

  async #show(place: Place, state: LogState, files: Parameters<typeof publish>[2]): Promise<boolean> {
    const edge = await publish(place, state, files);
    if (!edge) return false;
    this.#edge = { origin: state.origin, edge };
    this.#published = { origin: state.origin, size: state.size };
    await dropPartials(place, state.before.size, files);
    return true;
  }

  async #edgeOf(place: Place, { origin, size, root }: LogState): Promise<RightEdge | undefined> {
    const stored = this.#edge?.origin === origin ? this.#edge.edge : undefined;
    const same = stored && stored.size === size && equalBytes(stored.root(), root);
    const edge = same ? stored : ((await loadEdge(place, size, root)) ?? (await loadAgain(place, size, root)));
    // A copy: what fails from here on must leave the original as it was.
    return edge && new RightEdge(edge.facts);
  }
}
