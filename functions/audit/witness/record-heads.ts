// Every few seconds: the newest checkpoints of the regions go into the log of checkpoints. Any number of processes may do
// it at once, and break off anywhere: a head has the number after the last one that is committed, its name in the intake
// is made of that number, so the first to write it is the one who counts, and the log drops what comes late.
import { fromBase64, toBase64 } from '../../../shared/audit/base64.ts';
import type { Checkpoint } from '../../../shared/audit/checkpoint.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { HEAD_EPOCH, HEAD_TYPE, HEADS, headProducer } from '../../../shared/audit/head.ts';
import { latestAt, openJudge } from '../../../shared/audit/judge.ts';
import { proveConsistency, verifyConsistency } from '../../../shared/audit/proof.ts';
import { subtreesOf } from '../../../shared/audit/subtree.ts';
import { newestState, upToOf } from '../intake/acknowledge.ts';
import { nameOfReceived, type Received } from '../intake/intake.ts';
import type { LogDesk } from '../log/log-desk.ts';
import { checkpointName, witnessedName } from '../log/log-names.ts';
import type { LogStore } from '../log/log-store.ts';
import { headOf } from '../log/publish-checkpoint.ts';
import { readTileOf } from '../log/read-tile.ts';
import { decideHead, type HeadStep, type Recorded, type Shown, yearOfLog } from './head-decide.ts';

type Desk = Pick<LogDesk, 'policy' | 'now' | 'log'> & { readonly store: LogStore };

/** What was decided, and, when that was to record it, done. Throws when storage fails. */
export async function recordHead(desk: Desk, zone: string): Promise<HeadStep> {
  const step = await decide(desk, zone);
  if (step.kind === 'broken') desk.log({ what: 'diverged', zone, detail: step.why });
  return step;
}

async function decide(desk: Desk, zone: string): Promise<HeadStep> {
  const { store, now } = desk;
  // First what is recorded, then what there is: the other way round a log that grows would look shorter than it was.
  const heads = await newestState(store, HEADS);
  const last = heads?.heads?.[headProducer(zone)];
  const region = await newestState(store, zone);
  const from = last ? yearOfLog(last.log) : region?.year;
  const to = region?.year ?? 0;
  if (last && yearOfLog(last.log) > to) return { kind: 'broken', why: `${last.log} was there, and is not` };
  for (let year = from ?? 1; year <= to; year += 1) {
    const step = decideHead(last, await look(desk, zone, year, year < to), now());
    if (step.kind === 'next') continue;
    if (step.kind !== 'record') return step;
    const { checkpoint, after } = step;
    if (after && !(await isGrown(store, zone, year, after, checkpoint)))
      return {
        kind: 'broken',
        why: `the ${checkpoint.size} entries do not go on from the ${after.size} that were there`,
      };
    await hand(desk, zone, checkpoint, upToOf(heads, headProducer(zone), HEAD_EPOCH) + 1);
    return step;
  }
  return { kind: 'wait' };
}

/** What lies in storage is believed as far as it is signed, by the keys of the log and of the witnesses. */
async function look({ store, policy, now }: Desk, zone: string, year: number, ended: boolean): Promise<Shown> {
  const kept = await store.read('state', checkpointName(zone, year));
  if (!kept) return { year, ended, published: undefined, accepted: undefined };
  const { origin } = headOf(kept.bytes);
  const judge = await openJudge(policy(origin));
  const latest = latestAt(now());
  const judged = await judge(kept.bytes, latest);
  const isOurs = origin.endsWith(`/${zone}/${year}`);
  if (!judged || !isOurs) throw new Error(`what is published as ${zone}/${year} is not signed as that`);
  const published = judged.checkpoint;
  if (judged.quorum) return { year, ended, published, accepted: published };
  const witnessed = await store.read('state', witnessedName(zone, year));
  const seen = witnessed && (await judge(witnessed.bytes, latest));
  return { year, ended, published, accepted: seen?.quorum ? seen.checkpoint : undefined };
}

/** The proof is made of the tiles that everybody reads. */
async function isGrown(
  store: LogStore,
  zone: string,
  year: number,
  before: Recorded,
  { size, root }: Checkpoint,
): Promise<boolean> {
  const proof = await proveConsistency(before.size, size, subtreesOf(size, readTileOf(store, zone, year)));
  return verifyConsistency(before.size, size, fromBase64(before.root) ?? new Uint8Array(), root, proof);
}

/** Into the intake, from which the log of checkpoints is written as every log is. */
async function hand({ store, now }: Desk, zone: string, checkpoint: Checkpoint, pseq: number): Promise<void> {
  const at = now();
  const { origin: log, size, root } = checkpoint;
  const told = { log, size, root: toBase64(root) };
  const received: Received = {
    ...{ v: 1, producer: headProducer(zone), epoch: HEAD_EPOCH, oldest: 1, from: pseq, at },
    drafts: [
      {
        ...{ v: 1, id: eventId(at, crypto.getRandomValues(new Uint8Array(10))), type: HEAD_TYPE, by: 'functions' },
        ...told,
        t: { origin: at, edge: at },
      },
    ],
    hidden: [null],
  };
  await store.create('intake', nameOfReceived(HEADS, received), new TextEncoder().encode(JSON.stringify(received)));
}
