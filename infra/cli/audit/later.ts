// Logs of later years, which finish work of a year or accept its gaps.
import { isSameEnd, type LogEnd, previousOf, yearIn } from '../../../shared/audit/bundle/previous.ts';
import { readLeaf } from '../../../shared/audit/leaf.ts';
import { formatVerifierKey, readVerifierKey } from '../../../shared/audit/note-key.ts';
import type { FoundLog } from './find.ts';
import type { LogHoles } from './holes.ts';
import { fetchCheckpoint, fetchIfThere, Invalid, Refused, walkLog } from './log.ts';
import { recall } from './memory.ts';

const LAST = /\d{4}$/;

/**
 * Applies later logs' decisions about holes, in order, until no hole is open. Verifies each log completely
 * and requires that it names its predecessor. The key is the remembered one, or the key of `found` under the
 * log's own name: the edge does not choose it. Returns why an existing log is not trusted.
 */
export async function readLater(
  found: FoundLog,
  end: LogEnd,
  holes: LogHoles,
  now: number,
): Promise<string | undefined> {
  const key = readVerifierKey(found.vkey);
  let previous = end;
  for (;;) {
    const year = (yearIn(previous.origin) ?? Number.NaN) + 1;
    if (!key || Number.isNaN(year) || !LAST.test(found.base) || holes.found(now).open.length === 0) return undefined;
    const base = found.base.replace(LAST, String(year));
    const origin = previous.origin.replace(LAST, String(year));
    const vkey = recall(base)?.vkey ?? formatVerifierKey(origin, key.publicKey);
    try {
      const next = await readFollowing(found, { base, vkey, year, previous }, holes);
      if (!next) return undefined;
      previous = next;
    } catch (error) {
      if (!(error instanceof Invalid || error instanceof Refused)) throw error;
      return `the log of ${year} may decide them and is not verified: ${error.message}; verify --year ${year} first`;
    }
  }
}

interface Following {
  readonly base: string;
  readonly vkey: string;
  readonly year: number;
  readonly previous: LogEnd;
}

/** Reads one log. Returns its end, or `undefined` when the log does not exist. */
async function readFollowing(
  { open }: FoundLog,
  { base, vkey, year, previous }: Following,
  holes: LogHoles,
): Promise<LogEnd | undefined> {
  const reader = await open(base, vkey);
  if (!reader || !(await fetchIfThere(reader, 'checkpoint'))) return undefined;
  const { checkpoint } = await fetchCheckpoint(reader);
  const decisions: (() => void)[] = [];
  await walkLog(reader, checkpoint, [], (entry, index) => {
    if (index === 0) {
      const named = previousOf(readLeaf(entry) ?? {});
      if (!named || !isSameEnd(named, previous)) throw new Invalid(`it does not go on from ${previous.origin}`);
    }
    const decision = holes.decisionIn(entry, `${index} of ${year}`);
    if (decision) decisions.push(decision);
  });
  for (const decide of decisions) decide();
  return { origin: checkpoint.origin, size: checkpoint.size, root: checkpoint.root };
}
