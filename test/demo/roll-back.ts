// The way back, under load: who answers is seen in answers themselves, and live streams that are open meanwhile go on. What is
// made of `reference-en-fp16` has no half for live streams: the revision before hears them all along.
import { modelUuid } from '../../edge/protocol/deepgram-model.ts';
import { clipLike } from '../stack/clips.ts';
import { readBehind, readStable, waitUntil } from './fleet.ts';
import { MODEL, type Registered } from './revisions.ts';
import { type Story, short } from './story.ts';
import { type Talk, talk } from './talk.ts';

const TALKS = 2;
/** Answers in a row, by one revision, after which it is taken for the one that answers. */
const IN_A_ROW = 10;

const clip = clipLike('number.wav');

/** From `after` to `before`; a stream that does not end with the words of an undisturbed one is a request that failed. */
export async function rollBack(story: Story, before: Registered, after: Registered): Promise<void> {
  const { fleet, operator, traffic, say } = story;
  const usual = await (await talk(fleet.stack, MODEL, clip)).end();
  const open = await Promise.all(Array.from({ length: TALKS }, () => talk(fleet.stack, MODEL, clip)));
  if ((await traffic.askWho()) !== modelUuid(MODEL, after.revision))
    throw new Error('what was promoted does not answer');
  traffic.pace(0);
  const began = performance.now();
  const since = () => `${(performance.now() - began).toFixed(0)} ms`;
  const { revision } = await operator.run<{ revision: string }>('rollback', MODEL);
  if (revision !== before.revision) throw new Error(`rolled back to ${short(revision)}`);
  const [told, answered] = await Promise.all([
    waitUntil(async () => {
      const stable = await readStable(fleet.stack, MODEL);
      return stable.every((named) => named === revision) && (await readBehind(fleet.stack)).length === 0;
    }).then(since),
    waitForAnswers(story, revision).then((at) => `${(at - began).toFixed(0)} ms`),
  ]);
  say(`rolled back to ${short(revision)} under load: known to every roster and agent after ${told}`);
  say(`what was asked ${answered} after the command, and since, is answered by ${short(revision)}`);
  await endAll(story, open, usual.words);
}

/** Returns the start of the first request after which that revision answered all. */
async function waitForAnswers({ traffic, signal }: Story, revision: string): Promise<number> {
  const wanted = modelUuid(MODEL, revision);
  for (let [first, row] = [performance.now(), 0]; ; ) {
    signal.throwIfAborted();
    if (row === 0) first = performance.now();
    row = (await traffic.askWho()) === wanted ? row + 1 : 0;
    if (row === IN_A_ROW) return first;
  }
}

async function endAll({ figures, say }: Story, open: readonly Talk[], words: string): Promise<void> {
  const ended = await Promise.allSettled(open.map((one) => one.end()));
  const whole = ended.flatMap((one) => (one.status === 'fulfilled' && one.value.words === words ? [one.value] : []));
  figures.failed_requests += ended.length - whole.length;
  const by = [...new Set(whole.flatMap(({ revisions }) => revisions))].map(short).join(', ');
  say(`${whole.length} of ${ended.length} live streams that were open meanwhile ended with all words, heard by ${by}`);
}

/** Retires a revision: it answers no request, even where it is still loaded. */
export async function retire(story: Story, { revision }: Registered, before: Registered): Promise<void> {
  const { fleet, operator, traffic, say } = story;
  const reason = 'rolled back, and not to come again';
  const asked = ['promote', MODEL, short(revision), '--to', 'retired', '--reason', reason, ...operator.as('reviewer')];
  const { id, missing } = await operator.run<{ id: string; missing: number }>(...asked);
  if (missing > 0) await operator.run('approve', MODEL, id, ...operator.as('approver'));
  await waitUntil(async () => (await readBehind(fleet.stack)).length === 0);
  for (let at = 0; at < IN_A_ROW; at += 1)
    if ((await traffic.askWho()) !== modelUuid(MODEL, before.revision)) throw new Error('what is retired answers');
  const heard = await (await talk(fleet.stack, MODEL, clip)).end();
  if (heard.words === '' || heard.revisions.includes(revision)) throw new Error('live streams are not heard as before');
  say(`${short(revision)} → retired; ${short(before.revision)} answers all that is asked since, streams too`);
}
