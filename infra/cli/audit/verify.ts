// auricle audit verify: fetches and hashes the whole log and compares it with the remembered checkpoint.
import { yearIn } from '../../../shared/audit/bundle/previous.ts';
import { openCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { openVerifier } from '../../../shared/audit/note.ts';
import { readVerifierKey } from '../../../shared/audit/note-key.ts';
import { equalBytes } from '../../../shared/audit/tree.ts';
import { type Verdict, verdicts } from '../../../shared/audit/verify/verdict.ts';
import type { Answer } from '../answer.ts';
import { WITNESS_LAG_MS } from './doctor.ts';
import type { FoundLog } from './find.ts';
import { LogHoles } from './holes.ts';
import { readLater } from './later.ts';
import { fetchCheckpoint, Invalid, walkLog } from './log.ts';
import { fileOf, recall, remember } from './memory.ts';
import { findWitnessed, type Witnessed } from './witness.ts';

interface Findings {
  readonly size?: number;
  readonly root?: string;
  readonly detail: string;
  readonly holes?: readonly string[];
  /** Holes that an operator accepted by an entry of the log. */
  readonly accepted?: readonly string[];
}

const answerOf = (verdict: Verdict, findings: Findings): Answer => ({
  exit: verdicts[verdict],
  text: `${verdict}: ${[findings.detail, ...(findings.holes ?? []), ...(findings.accepted ?? [])].join('\n  ')}`,
  value: { verdict, ...findings },
});

interface VerifyOptions {
  /** The auditor's own policy; it overrides the policy that the log suggests. */
  readonly policy?: string | undefined;
  readonly now?: number;
}

export async function verifyLog(found: FoundLog, { policy, now = Date.now() }: VerifyOptions): Promise<Answer> {
  const { base, vkey, reader } = found;
  const before = recall(base);
  if (before && before.vkey !== vkey)
    return answerOf('diverged', { detail: `the key is not the one that was seen before, which is in ${fileOf(base)}` });
  try {
    // Fetched before the checkpoint, so that the checkpoint's log is at least as long.
    const witnessed = await findWitnessed(reader, policy, now);
    const { note, checkpoint } = await fetchCheckpoint(reader);
    const seen = before && (await openCheckpoint(new TextEncoder().encode(before.note), reader.verifier));
    const earlier = [...(seen ? [seen] : []), ...(witnessed ? [witnessed.checkpoint] : [])];
    const holes = new LogHoles(yearIn(reader.verifier.name));
    const sizes = earlier.map(({ size }) => size);
    const roots = await walkLog(reader, checkpoint, sizes, (entry, index) => {
      holes.see(entry, index);
    });
    const undecided = await readLater(found, { ...checkpoint, origin: reader.verifier.name }, holes, now);
    const { open, accepted } = holes.found(now);
    const findings = {
      size: checkpoint.size,
      root: Buffer.from(checkpoint.root).toString('base64'),
      ...(accepted.length > 0 && { accepted }),
    };
    const other = earlier.find(({ size, root }) => !equalBytes(roots.get(size) ?? new Uint8Array(), root));
    if (other) {
      const origin = other === seen ? 'seen before' : 'witnessed';
      const detail = `the log of ${findings.size} entries is not the one of ${other.size} that was ${origin}, grown`;
      return answerOf('diverged', { ...findings, detail });
    }
    remember(base, { vkey, note: new TextDecoder().decode(note) });
    if (open.length > 0) {
      const detail = [`${findings.size} entries with holes`, ...(undecided === undefined ? [] : [undecided])].join(
        '; ',
      );
      return answerOf('incomplete', { ...findings, detail, holes: open });
    }
    const since = seen ? `, grown from ${seen.size}` : '';
    const { verdict, text } = judgeWitnessed(witnessed, findings.size, now);
    return answerOf(verdict, {
      ...findings,
      detail: `${findings.size} entries are as they were signed${since}; ${text}`,
    });
  } catch (error) {
    const anew = error instanceof Invalid ? await signedAnew(found) : undefined;
    if (anew !== undefined) return answerOf('diverged', { detail: anew });
    if (error instanceof Invalid) return answerOf('invalid', { detail: error.message });
    throw error;
  }
}

/**
 * Returns the message for a log that verifies under the key that the edge names but not under the remembered
 * one.
 */
export async function signedAnew({ base, vkey, reader, offered }: FoundLog): Promise<string | undefined> {
  if (offered === undefined || offered === vkey || recall(base)?.vkey !== vkey) return undefined;
  const key = readVerifierKey(offered);
  const note = await reader.fetch('checkpoint').catch(() => undefined);
  if (!key || !note || (await openCheckpoint(note, reader.verifier))) return undefined;
  if (!(await openCheckpoint(note, await openVerifier(key.name, key.publicKey)))) return undefined;
  return `signed with another key than the one remembered in ${fileOf(base)}; if the log is new on purpose, remove that file`;
}

/**
 * Evaluates witnessing. An active log is ahead of its witnesses; one that they have not cosigned for long
 * counts as unwitnessed.
 */
function judgeWitnessed(
  witnessed: Witnessed | undefined,
  size: number,
  now: number,
): { verdict: Verdict; text: string } {
  if (!witnessed) return { verdict: 'unwitnessed', text: 'no witness' };
  const { checkpoint, names, at } = witnessed;
  const text = `${checkpoint.size} of them witnessed by ${names.join(', ')}, ${new Date(at).toISOString()}`;
  const fresh = checkpoint.size === size || now - at <= WITNESS_LAG_MS;
  return fresh ? { verdict: 'witnessed', text } : { verdict: 'unwitnessed', text: `only ${text}` };
}
