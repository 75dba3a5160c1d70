// A revision goes from gate to gate as live traffic says, as an operator would let it: what a gate wants to see is asked for
// again and again, until it opens.
import { setTimeout as pause } from 'node:timers/promises';
import { liveEvidence, transitionRow } from '../../shared/registry/contract.ts';
import type { Evidence } from '../../shared/registry/evidence.ts';
import { showStanding } from '../../shared/registry/stage.ts';
import { MODEL, type Registered } from './revisions.ts';
import { type Story, short } from './story.ts';

const LOOK_MS = 1_000;

/** The first gate, with what was measured. The refusal when it stays closed. */
export async function enterGrey({ operator }: Story, { revision }: Registered, pieces: readonly Evidence[]) {
  const asked = ['promote', MODEL, short(revision), ...operator.evidence(pieces), ...operator.as('reviewer')];
  const { exit, text } = await operator.ask(...asked);
  return exit === 0 ? undefined : text;
}

/** Promotes a revision from grey to full on the agents' counts alone, without other evidence. */
export async function climb(story: Story, one: Registered): Promise<void> {
  const { operator, signal, say } = story;
  for (;;) {
    signal.throwIfAborted();
    const asked = ['promote', MODEL, short(one.revision), ...operator.as('reviewer')];
    const { exit, text, value } = await operator.ask(...asked);
    if (exit !== 0) {
      if (!/gate_closed/.test(text)) throw new Error(text);
      await lookOn(story, one);
      await pause(LOOK_MS);
      continue;
    }
    const { id, to, missing } = transitionRow.parse(value);
    if (missing > 0) await operator.run('approve', MODEL, id, ...operator.as('approver'));
    const seen = await readLive(story, one);
    say(`${short(one.revision)} → ${showStanding(to)}${missing > 0 ? ', signed by two' : ''}`);
    if (to.stage === 'full') return;
    if (seen?.stage === 'develop-verify') throw new Error('live traffic moved it back');
  }
}

async function readLive({ fleet }: Story, { revision }: Registered) {
  const { url, token } = fleet.stack;
  const route = `${url}/v1/models/${MODEL}/revisions/${encodeURIComponent(revision)}/evidence`;
  const answered = await fetch(route, { headers: { authorization: `Bearer ${token}` } });
  return liveEvidence.safeParse(await answered.json()).data;
}

/** Throws when live traffic has moved it back: then no gate opens any more. */
async function lookOn(story: Story, one: Registered): Promise<void> {
  const live = await readLive(story, one);
  if (live?.stage === 'develop-verify')
    throw new Error(`live traffic moved ${short(one.revision)} back: ${JSON.stringify(live.verdicts)}`);
}
