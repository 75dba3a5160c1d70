// auricle audit verify: everything is fetched and hashed again, and compared with what was seen before.
import { openCheckpoint } from '../../shared/audit/checkpoint.ts';
import { openVerifier } from '../../shared/audit/note.ts';
import { readVerifierKey } from '../../shared/audit/note-key.ts';
import { equalBytes } from '../../shared/audit/tree.ts';
import { NextNumbers, readLoss } from '../../shared/audit/verify/next-numbers.ts';
import { type Verdict, verdicts } from '../../shared/audit/verify/verdict.ts';
import { limits } from '../../shared/limits.ts';
import type { Answer } from './answer.ts';
import type { Found } from './audit-find.ts';
import { fetchCheckpoint, Invalid, leafOf, walkLog } from './audit-log.ts';
import { fileOf, recall, remember } from './audit-memory.ts';
import { findWitnessed, type Witnessed } from './audit-witness.ts';

interface Said {
  readonly size?: number;
  readonly root?: string;
  readonly detail: string;
  readonly holes?: readonly string[];
}

const tell = (verdict: Verdict, said: Said): Answer => ({
  exit: verdicts[verdict],
  text: `${verdict}: ${[said.detail, ...(said.holes ?? [])].join('\n  ')}`,
  value: { verdict, ...said },
});

interface Told {
  /** The auditor's own policy; the log's is a suggestion. */
  readonly policy?: string | undefined;
  readonly now?: number;
  /** Sees every entry, in its order; what it returns of the log as a whole is a reason not to believe it. */
  readonly also?: { see(entry: Uint8Array): void; end(): Promise<readonly string[]> };
}

export async function verifyLog(found: Found, { policy, now = Date.now(), also }: Told): Promise<Answer> {
  const { base, vkey, reader } = found;
  const before = recall(base);
  if (before && before.vkey !== vkey)
    return tell('diverged', { detail: `the key is not the one that was seen before, which is in ${fileOf(base)}` });
  try {
    // Before the checkpoint, which is then of a log that is at least as long.
    const witnessed = await findWitnessed(reader, policy, now);
    const { note, checkpoint } = await fetchCheckpoint(reader);
    const seen = before && (await openCheckpoint(new TextEncoder().encode(before.note), reader.verifier));
    const earlier = [...(seen ? [seen] : []), ...(witnessed ? [witnessed.checkpoint] : [])];
    const holes = new Holes();
    const sizes = earlier.map(({ size }) => size);
    const roots = await walkLog(reader, checkpoint, sizes, (entry, index) => {
      holes.see(entry, index);
      also?.see(entry);
    });
    const said = { size: checkpoint.size, root: Buffer.from(checkpoint.root).toString('base64') };
    const other = earlier.find(({ size, root }) => !equalBytes(roots.get(size) ?? new Uint8Array(), root));
    if (other) {
      const who = other === seen ? 'seen before' : 'witnessed';
      const detail = `the log of ${said.size} entries is not the one of ${other.size} that was ${who}, grown`;
      return tell('diverged', { ...said, detail });
    }
    const strayed = (await also?.end()) ?? [];
    if (strayed.length > 0) return tell('diverged', { ...said, detail: strayed.join('; ') });
    remember(base, { vkey, note: new TextDecoder().decode(note) });
    if (holes.found.length > 0)
      return tell('incomplete', { ...said, detail: `${said.size} entries with holes`, holes: holes.found });
    const since = seen ? `, grown from ${seen.size}` : '';
    const { verdict, text } = judgeWitnessed(witnessed, said.size, now);
    return tell(verdict, { ...said, detail: `${said.size} entries are as they were signed${since}; ${text}` });
  } catch (error) {
    const anew = error instanceof Invalid ? await signedAnew(found) : undefined;
    if (anew !== undefined) return tell('diverged', { detail: anew });
    if (error instanceof Invalid) return tell('invalid', { detail: error.message });
    throw error;
  }
}

/** What is to be said of a log that is whole under the key that the edge names, and not under the one remembered. */
export async function signedAnew({ base, vkey, reader, offered }: Found): Promise<string | undefined> {
  if (offered === undefined || offered === vkey || recall(base)?.vkey !== vkey) return undefined;
  const key = readVerifierKey(offered);
  const note = await reader.fetch('checkpoint').catch(() => undefined);
  if (!key || !note || (await openCheckpoint(note, reader.verifier))) return undefined;
  if (!(await openCheckpoint(note, await openVerifier(key.name, key.publicKey)))) return undefined;
  return `signed with another key than the one remembered in ${fileOf(base)}; if this is a new log on purpose, remove that file`;
}

/** A log that goes on is ahead of its witnesses; one that they have not seen for long is witnessed no more. */
function judgeWitnessed(
  witnessed: Witnessed | undefined,
  size: number,
  now: number,
): { verdict: Verdict; text: string } {
  if (!witnessed) return { verdict: 'unwitnessed', text: 'no witness' };
  const { checkpoint, names, at } = witnessed;
  const text = `${checkpoint.size} of them witnessed by ${names.join(', ')}, ${new Date(at).toISOString()}`;
  const fresh = checkpoint.size === size || now - at <= limits.auditWitnessLagMs.value;
  return fresh ? { verdict: 'witnessed', text } : { verdict: 'unwitnessed', text: `only ${text}` };
}

/** Numbers that should have no holes: those of each outbox, and those of each tenant. */
class Holes {
  readonly found: string[] = [];
  readonly #next = new NextNumbers();
  #first: number | undefined;

  see(entry: Uint8Array, index: number): void {
    const leaf = leafOf(entry);
    if (!leaf) return;
    // The first log of a region begins with the first of everything; later ones go on from what was before.
    if (index === 0 && leaf.type === 'shard.open' && !('previous' in leaf)) this.#first = 1;
    this.#count(`outbox ${leaf.p} ${leaf.ep}`, leaf.pseq, index);
    if (leaf.tn !== undefined && leaf.tseq !== undefined) this.#count(`tenant ${leaf.tn}`, leaf.tseq, index);
    // The log knows of this one itself.
    const loss = readLoss(leaf);
    if (!loss) return;
    this.found.push(`entry ${index}: ${loss.text}`);
    // What comes after all, of a life that was broken off, goes on where it was.
    if (loss.to !== undefined) this.#next.pass(`outbox ${String(loss.outbox)} ${loss.epoch}`, loss.to);
  }

  #count(name: string, number: number, index: number): void {
    const expected = this.#next.take(name, number, this.#first ?? number);
    if (expected !== number) this.found.push(`entry ${index}: ${number} of ${name}, expected ${expected}`);
  }
}
