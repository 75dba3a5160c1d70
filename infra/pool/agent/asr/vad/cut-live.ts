import type { Sound } from '../../audio/mono.ts';
import { energy, MOST_UNITS, ONSET_UNITS, PADDING_UNITS, quietestCut, type Unit } from './cut.ts';
import { UNIT_SECONDS } from './detect.ts';

/** Units of the end of a too long utterance among which the quietest one is looked for: what follows is heard twice. */
const CUT_UNITS = 5 / UNIT_SECONDS;
/** Units of silence that may be held back inside an utterance: with more the engine would give its sequence up. */
const HELD_BACK_UNITS = 9;

/** State that another cutter needs to continue; its units come again, with their decisions. */
export interface CutterState {
  readonly speaking: boolean;
  /** Length of the current run of voiced units (before speech) or unvoiced units (inside it). */
  readonly run: number;
  /** Decisions of the units held, oldest first. */
  readonly voiced: readonly boolean[];
}

/** An utterance that has ended. */
export interface CutUtterance<Samples extends Sound> {
  /** Its units, and behind them those that were already given away when it became too long. */
  readonly units: readonly Unit<Samples>[];
  /** Units of it that are its own. */
  readonly own: number;
  readonly ending: 'endpoint' | 'length';
}

/** Milliseconds of silence that end an utterance, in units; `false`: none do. */
function releaseUnits(endpointingMs: number | false): number {
  return endpointingMs === false
    ? Number.POSITIVE_INFINITY
    : Math.max(1, Math.ceil(endpointingMs / 1_000 / UNIT_SECONDS));
}

/** Units of silence behind the last voiced one that belong to the utterance. */
function paddingOf(release: number): number {
  return Math.max(PADDING_UNITS, release - HELD_BACK_UNITS);
}

/**
 * Cuts live units into utterances, as `createCutter` does for recordings, but tells of an utterance as it grows: units
 * are `sure` once nothing can take them out of it again. Same units and options, same cuts.
 */
export function createLiveCutter<Samples extends Sound>(endpointingMs: number | false, from?: CutterState) {
  let release = releaseUnits(endpointingMs);
  let held: Unit<Samples>[] = [];
  let speaking = from?.speaking ?? false;
  let run = from?.run ?? 0;

  /** The most units of the utterance that were ever sure: options that change may take some of them back. */
  let given = 0;

  const sure = () => (speaking ? Math.max(0, held.length - Math.max(0, run - paddingOf(release))) : 0);

  /** Before speech as much is kept as may belong to it. */
  function trim() {
    const most = PADDING_UNITS + (speaking ? 0 : run);
    if (held.length > most) held = held.slice(held.length - most);
  }

  function endpoint(): CutUtterance<Samples> {
    const own = sure();
    const utterance = { units: held.slice(0, Math.max(own, given)), own, ending: 'endpoint' } as const;
    held = held.slice(own);
    speaking = false;
    run = 0;
    given = 0;
    trim();
    return utterance;
  }

  /**
   * Ends the utterance at the quietest place of its last seconds; the rest begins the next one if it holds
   * speech.
   */
  function tooLong(): CutUtterance<Samples> {
    const tail = held.length - CUT_UNITS;
    // The search itself looks at the second half of what it gets.
    const own = tail - CUT_UNITS + quietestCut(held.slice(tail - CUT_UNITS).map(({ samples }) => energy(samples)));
    const utterance = { units: held, own, ending: 'length' } as const;
    held = held.slice(own);
    run = Math.min(run, held.length);
    given = 0;
    if (!held.some(({ voiced }) => voiced)) {
      speaking = false;
      run = 0;
      trim();
    }
    return utterance;
  }

  return {
    /** A unit whose decision `from` has brought along. */
    restore(unit: Unit<Samples>) {
      held.push(unit);
    },
    /** The utterance that ends with this unit, if one does. */
    push(unit: Unit<Samples>): CutUtterance<Samples> | undefined {
      given = Math.max(given, sure());
      held.push(unit);
      if (!speaking) {
        run = unit.voiced ? run + 1 : 0;
        if (run < ONSET_UNITS) trim();
        else {
          speaking = true;
          run = 0;
        }
        return undefined;
      }
      run = unit.voiced ? 0 : run + 1;
      if (run >= release) return endpoint();
      return held.length >= MOST_UNITS ? tooLong() : undefined;
    },
    /** Ends what is being said now, `last` being the part of a unit that came after the others. */
    end(last: Unit<Samples> | undefined): Unit<Samples>[] {
      const own = sure();
      const kept = run > paddingOf(release) || !last ? [] : [last];
      const units = speaking ? [...held.slice(0, own), ...kept] : [];
      held = [];
      speaking = false;
      run = 0;
      given = 0;
      return units;
    },
    options(next: number | false) {
      release = releaseUnits(next);
    },
    speaking: () => speaking,
    /** Units in the cutter, oldest first; during speech they begin with the utterance. */
    held: (): readonly Unit<Samples>[] => held,
    /** How many of those are of the utterance for certain. */
    sure,
    /** Unvoiced units since the last voiced one of the utterance. */
    silentUnits: () => (speaking ? run : 0),
    state: (): CutterState => ({ speaking, run, voiced: held.map(({ voiced }) => voiced) }),
  };
}
