// Links from the log of a bundle to those before and after it. They prove from a bundle of one year alone that nothing of the
// tenant is missing at its ends. A log's first leaf names the last state of the log before it:
//
//   before  this log names that state itself: the leaf has to be in the log of that very root, or of one that is reached
//           from there by the first leaves of the logs between them
//   after   the first leaf of a later log has to name the state that the bundle ends with; that log's checkpoint is signed
//           by its key, and witnessed where the policy asks for witnesses
import { decodeText } from '../bundle/entry-line.ts';
import type { LinkFiles } from '../bundle/manifest.ts';
import { isSameEnd, type LogEnd, previousOf } from '../bundle/previous.ts';
import { readCheckpoint } from '../checkpoint.ts';
import { type Judge, type Judged, latestAt, openJudge } from '../judge.ts';
import { splitNote } from '../note.ts';
import { verifyInclusion } from '../proof.ts';
import { readReceipt } from '../receipt.ts';
import { hashLeaf } from '../tree.ts';
import { type LeafFacts, readLeafFacts } from './leaf-facts.ts';
import { keysOfLog } from './log-keys.ts';
import type { OpenBundle } from './open-bundle.ts';
import type { Findings } from './verdict.ts';

export interface Linked {
  /** Number of the tenant's last leaf in a log before this one. */
  readonly before?: number;
  /** Number of the tenant's first leaf in a later log. */
  readonly after?: number;
  /** The leaf of the export's creation, when a later log has it. */
  readonly anchor?: { readonly leaf: LeafFacts; readonly index: number; readonly origin: string };
}

interface Link {
  readonly facts: LeafFacts;
  readonly index: number;
  /** Log of the receipt; its signature is not verified yet. */
  readonly log: LogEnd;
  readonly note: string;
}

/** `end`: the log of the bundle. `previous`: the predecessor named by its first leaf. */
export async function checkLinks(
  bundle: OpenBundle,
  { end, previous, now }: { readonly end: LogEnd; readonly previous: LogEnd | undefined; readonly now: number },
  findings: Findings,
): Promise<Linked> {
  const { before = [], after = [] } = bundle.manifest.links ?? {};
  const walk = new LinkWalk(bundle, findings);
  const first = await walk.back(before, previous);
  return { ...(first !== undefined && { before: first }), ...(await walk.on(after, end, now)) };
}

class LinkWalk {
  readonly #bundle: OpenBundle;
  readonly #findings: Findings;

  constructor(bundle: OpenBundle, findings: Findings) {
    this.#bundle = bundle;
    this.#findings = findings;
  }

  /** Returns the number of the tenant's last leaf in earlier logs. */
  async back(links: readonly LinkFiles[], previous: LogEnd | undefined): Promise<number | undefined> {
    let reached = previous;
    for (const files of links) {
      const link = await this.#read(files);
      if (!link) return undefined;
      if (!reached || !isSameEnd(link.log, reached))
        return this.#wrong(`${files.entry} is not in the log that this one goes on from`);
      if (!isOpening(link)) return this.#isOwn(link, files) ? link.facts.tseq : undefined;
      reached = previousOf(link.facts.leaf);
    }
    return undefined;
  }

  async on(links: readonly LinkFiles[], end: LogEnd, now: number): Promise<Omit<Linked, 'before'>> {
    let [reached, judged, after, anchor]: [LogEnd, Judged?, number?, Linked['anchor']?] = [end];
    for (const files of links) {
      const link = await this.#read(files);
      if (!link) return {};
      const { facts, index, log } = link;
      if (isOpening(link)) {
        const named = previousOf(facts.leaf);
        if (!named || !isSameEnd(named, reached))
          return this.#wrong(`${files.entry} does not go on from the log before it`) ?? {};
        const judge = await this.#judgeOf(log.origin);
        judged = await judge(new TextEncoder().encode(link.note), latestAt(now));
        if (!judged) return this.#wrong(`${files.receipt} is not signed by ${log.origin}`) ?? {};
        reached = log;
        continue;
      }
      if (!judged || !isSameEnd(log, reached))
        return this.#wrong(`${files.entry} is not in a log that is shown to go on from this one`) ?? {};
      if (!this.#isOwn(link, files)) return {};
      after ??= facts.tseq;
      if (facts.id === this.#bundle.manifest.anchor.id) anchor = { leaf: facts, index, origin: log.origin };
    }
    if (judged && !(judged.quorum && judged.witnesses.length > 0))
      this.#findings.add(
        'links',
        'unwitnessed',
        `${reached.origin}, which shows where this log ended, is not witnessed`,
      );
    return { ...(after !== undefined && { after }), ...(anchor && { anchor }) };
  }

  /** Reads an entry and its receipt. */
  async #read({ entry, receipt }: LinkFiles): Promise<Link | undefined> {
    const { read } = this.#bundle;
    const [bytes, proof] = [await read(entry), await read(receipt)];
    if (!bytes || !proof) return undefined;
    const [text, found] = [decodeText(bytes), readReceipt(proof)];
    const facts = text === undefined ? undefined : readLeafFacts(text);
    const parts = found && splitNote(new TextEncoder().encode(found.checkpoint));
    const log = parts && readCheckpoint(parts.text);
    const leaf = hashLeaf(bytes);
    if (!facts || !found || !log || !verifyInclusion({ index: found.index, leaf, proof: found.proof }, log))
      return this.#wrong(`${receipt} does not show that ${entry} is in a log`);
    return { facts, index: found.index, log, note: found.checkpoint };
  }

  #isOwn({ facts }: Link, { entry }: LinkFiles): boolean {
    const { tenant } = this.#bundle.manifest;
    if (facts.tn !== tenant) this.#wrong(`${entry} is not one of the tenant ${tenant}`);
    return facts.tn === tenant;
  }

  #judgeOf(origin: string): Promise<Judge> {
    const { policy } = this.#bundle;
    return openJudge({ ...policy, logs: keysOfLog(policy.logs, origin).map((key) => ({ key })) });
  }

  #wrong(text: string): undefined {
    this.#findings.add('links', 'invalid', text);
    return undefined;
  }
}

const isOpening = ({ facts, index }: Link): boolean => index === 0 && facts.type === 'shard.open';
