// Sequences waiting events: decides the next entries of a log purely from its state and the deliveries.

import { encodeLeaf, type Leaf, type LeafDraft } from '../../../shared/audit/leaf.ts';
import { toBase64 } from '../../../shared/base64.ts';
import type { Received } from '../intake/intake.ts';
import type { Waiting } from '../intake/read-waiting.ts';
import { LOG_TICK_MS } from '../limits.ts';
import { counterOf, type LogState } from '../log/log-state.ts';
import { endSilent, forgetLives, isMany, noteLife } from './lives.ts';
import { mayRepeat } from './repeats.ts';

/** Entries of one commit: about 4 MiB of write-ahead record, and 16 full tiles. */
export const COMMIT_ENTRIES_MAX = 4_096;
/**
 * Longest wait of a delivery for the one before it: outboxes resend every 15 s, so a delivery missing for
 * longer is lost.
 */
export const DELIVERY_GAP_MS = 600_000;
/**
 * Age at which a hole in an outbox's numbers is logged: three times DELIVERY_RESEND_MS, and within a minute
 * with the commit.
 */
export const AUDIT_LATE_MS = 45_000;

/** Reports whether the last entries of the log have that id. */
export type IsRepeat = (id: string) => boolean;

export interface SequenceOptions {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly newId: () => string;
  /** Whether the state has no capacity for another outbox. */
  readonly full?: boolean;
  readonly isKnown?: IsRepeat;
}

export interface Sequenced {
  readonly entries: readonly Uint8Array[];
  /** Hidden values of each entry, encrypted. */
  readonly hidden: readonly (string | null)[];
  readonly upTo: LogState['upTo'];
  readonly tseq: LogState['tseq'];
  readonly lives: NonNullable<LogState['lives']>;
  readonly late: NonNullable<LogState['late']>;
  /** Leaves that say that events are missing: some may still come. */
  readonly gaps: number;
  /** Deliveries of which nothing is left once these entries are in the log. */
  readonly used: readonly string[];
  /** Deliveries that wait for what is before them, or for room. */
  readonly held: number;
}

type LogsOwn = {
  readonly type:
    | 'shard.open'
    | 'shard.close'
    | 'log.tick'
    | 'producer.gap'
    | 'producer.late'
    | 'producer.silent'
    | 'event.repeated';
  readonly [member: string]: unknown;
};

/** Leaves of one commit in the making. */
class Leaves {
  readonly entries: Uint8Array[] = [];
  readonly hidden: (string | null)[] = [];
  readonly upTo: Record<string, number>;
  readonly tseq: Record<string, number>;
  readonly lives: Record<string, number>;
  readonly late: Record<string, number>;
  gaps = 0;
  /** Ids of the events of this commit. */
  readonly #ids = new Set<string>();
  readonly #now: number;
  readonly #origin: string;
  readonly #newId: () => string;

  constructor(state: LogState, now: number, newId: () => string) {
    this.upTo = { ...state.upTo };
    this.tseq = { ...state.tseq };
    this.lives = { ...state.lives };
    this.late = { ...state.late };
    this.#now = now;
    this.#origin = state.origin;
    this.#newId = newId;
  }

  add(draft: LeafDraft, from: Pick<Leaf, 'p' | 'ep' | 'pseq'>, hidden: string | null): void {
    const { tn } = draft;
    const tseq = tn === undefined ? undefined : (this.tseq[tn] ?? 0) + 1;
    if (tn !== undefined && tseq !== undefined) this.tseq[tn] = tseq;
    this.upTo[counterOf(from.p, from.ep)] = from.pseq;
    const t = { ...draft.t, seq: this.#now };
    this.entries.push(encodeLeaf({ ...draft, ...from, ...(tseq !== undefined && { tseq }), t }));
    this.hidden.push(hidden);
  }

  /** The next event of an outbox, or that it is here already. */
  take(draft: LeafDraft, from: Pick<Leaf, 'p' | 'ep' | 'pseq'>, hidden: string | null, isKnown: IsRepeat): void {
    if (mayRepeat(from.p) && (this.#ids.has(draft.id) || isKnown(draft.id))) {
      const t = { origin: this.#now, edge: this.#now };
      this.add({ v: 1, id: this.#newId(), type: 'event.repeated', by: 'log', t, of: draft.id }, from, null);
      return;
    }
    const broken = noteLife(this, from, draft, this.#now);
    if (broken) this.addGap({ type: 'producer.gap', outbox: from.p, ...broken });
    this.#ids.add(draft.id);
    this.add(draft, from, hidden);
  }

  addGap(own: LogsOwn): void {
    this.gaps += 1;
    this.addOwn(own);
  }

  /** Adds an entry of the log itself, which counts as an outbox. */
  addOwn(own: LogsOwn): void {
    const [p, ep] = ['log', this.#origin];
    const pseq = (this.upTo[counterOf(p, ep)] ?? 0) + 1;
    const t = { origin: this.#now, edge: this.#now };
    this.add({ ...own, v: 1, id: this.#newId(), by: 'log', t }, { p, ep, pseq }, null);
  }
}

/**
 * Sequences deliveries. An event is taken when it is the next of its outbox; earlier ones are dropped, later
 * ones wait. Lost and overdue events leave a leaf that says so.
 */
export function sequence(
  state: LogState,
  waiting: readonly Waiting[],
  { now, newId, full = false, isKnown = () => false }: SequenceOptions,
): Sequenced {
  const leaves = new Leaves(state, now, newId);
  const used: string[] = [];
  let held = 0;
  if (state.size === 0) leaves.addOwn(opening(state));
  else if (waiting.length === 0 && now - state.last >= LOG_TICK_MS) leaves.addOwn({ type: 'log.tick' });
  const room = COMMIT_ENTRIES_MAX;
  for (const { name, received } of [...waiting].sort(byTurn)) {
    const { producer, epoch, from, drafts, hidden } = received;
    const counter = counterOf(producer, epoch);
    const known = leaves.upTo[counter];
    const missing = missingBefore(received, known ?? 0, now);
    // Reports of the functions are always taken: they are few, and the reporter waits for them.
    const unknown = full && known === undefined && !isMany(producer);
    if (missing === 'wait' || leaves.entries.length >= room || unknown) {
      held += 1;
      if (missing === 'wait') noteLate(leaves, received, known ?? 0, now);
      continue;
    }
    if (missing) leaves.addGap({ type: 'producer.gap', outbox: producer, epoch, ...missing });
    delete leaves.late[counter];
    const start = Math.max(0, (missing?.to ?? known ?? 0) + 1 - from);
    for (let at = start; at < drafts.length; at += 1) {
      const draft = drafts[at] as LeafDraft;
      leaves.take(draft, { p: producer, ep: epoch, pseq: from + at }, hidden[at] ?? null, isKnown);
    }
    used.push(name);
  }
  // Nothing is forgotten while nothing is written.
  if (leaves.entries.length > 0) {
    for (const silent of endSilent(leaves.lives, leaves.upTo, now))
      leaves.addOwn({ type: 'producer.silent', ...silent });
    forgetLives(leaves.lives, leaves.upTo, now);
  }
  const { entries, hidden, upTo, tseq, lives, late, gaps } = leaves;
  return { entries, hidden, upTo, tseq, lives, late, gaps, used, held };
}

/** The last leaf of a log. */
export function closing(state: LogState, now: number, newId: () => string): Sequenced {
  const leaves = new Leaves(state, now, newId);
  if (state.size === 0) leaves.addOwn(opening(state));
  leaves.addOwn({ type: 'shard.close' });
  return { ...leaves, used: [], held: 0 };
}

/** Says once that something is missing that may still come. */
function noteLate(leaves: Leaves, { producer, epoch, from, at }: Received, known: number, now: number): void {
  const counter = counterOf(producer, epoch);
  if (now - at < AUDIT_LATE_MS || leaves.late[counter] === known) return;
  leaves.late[counter] = known;
  leaves.addGap({ type: 'producer.late', outbox: producer, epoch, from: known + 1, to: from - 1 });
}

function opening({ previous }: LogState): LogsOwn {
  const before = previous && { ...previous, root: toBase64(previous.root) };
  return { type: 'shard.open', ...(before && { previous: before }) };
}

const byTurn = ({ received: a }: Waiting, { received: b }: Waiting): number =>
  compare(a.producer, b.producer) || compare(a.epoch, b.epoch) || a.from - b.from;

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Returns the numbers between the log and a delivery that will not come; `wait` while they may. */
function missingBefore(
  { from, oldest, at }: Received,
  known: number,
  now: number,
): { from: number; to: number } | 'wait' | undefined {
  if (from <= known + 1) return undefined;
  // The outbox has nothing before `oldest`, and what it has comes in order.
  if (oldest >= from || now - at > DELIVERY_GAP_MS) return { from: known + 1, to: from - 1 };
  return 'wait';
}
