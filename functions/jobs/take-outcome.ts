// Turns an outcome that an agent wrote into an event of its upload.

import { readOutcome } from '../../shared/jobs/outcome.ts';
import {
  editionOf,
  OUTCOMES,
  type OutcomePlace,
  outcomeBlob,
  pieceOf,
  readOutcomeBlob,
} from '../../shared/jobs/paths.ts';
import { isOver, type UploadEvent } from '../../shared/jobs/state.ts';
import type { JobContext } from './context.ts';
import { release } from './release.ts';
import { settle } from './settle.ts';
import { readUpload, step } from './step.ts';

type Metadata = Readonly<Record<string, string>>;

/** The event that an outcome is. `undefined`: it moves nothing (a piece), `unreadable`: no agent of ours wrote it. */
export function eventOf({ run, name }: OutcomePlace, metadata: Metadata): UploadEvent | 'unreadable' | undefined {
  if (name.startsWith('pieces/')) return undefined;
  const facts = readOutcome(metadata);
  if (!facts) return 'unreadable';
  const { seconds, warnings, pieces, blocks, refusal } = facts;
  const piece = pieceOf(name);
  const edition = editionOf(name);
  if (piece !== undefined) return { type: 'recognised', run, piece, edition };
  if (name.startsWith('transcript')) return { type: 'merged', run, edition, seconds, warnings };
  if (name === 'plan') return pieces ? { type: 'planned', run, pieces, seconds, warnings, blocks } : 'unreadable';
  return refusal ? { type: 'refused', run, edition, refusal } : 'unreadable';
}

/** A blob of any name in `outcomes`. What belongs to nothing is deleted. */
export async function takeOutcome(context: JobContext, name: string): Promise<void> {
  const place = readOutcomeBlob(name);
  const found = await context.blobs.find(OUTCOMES, name);
  if (!found) return;
  const record = place && (await readUpload(context, place));
  if (!place || !record || place.run !== record.state.run) {
    context.log({
      what: place && record ? 'orphan' : 'forged',
      tenant: place?.tenant,
      upload: place?.id,
      detail: OUTCOMES,
    });
    await context.blobs.remove(OUTCOMES, name);
    return;
  }
  const event = eventOf(place, found.metadata);
  if (event === undefined) return isOver(record.state.status) ? settle(context, place) : undefined;
  if (event === 'unreadable') {
    // Names are created and never replaced: the next agent writes the same one.
    context.log({ what: 'unreadable', tenant: place.tenant, upload: place.id, detail: place.name });
    await context.blobs.remove(OUTCOMES, name);
    return;
  }
  await happen(context, place, [event]);
}

/** Replays all outcomes of the run. */
export async function takeOutcomes(
  context: JobContext,
  place: { tenant: string; id: string },
  run: number,
): Promise<void> {
  const prefix = outcomeBlob({ ...place, run, name: 'plan' }).slice(0, -'plan'.length);
  const events: UploadEvent[] = [];
  for (const { name, metadata } of await context.blobs.list(OUTCOMES, prefix)) {
    const read = readOutcomeBlob(name);
    const event = read && eventOf(read, metadata);
    if (!read || event === 'unreadable') await context.blobs.remove(OUTCOMES, name);
    else if (event) events.push(event);
  }
  if (events.length > 0) await happen(context, place, events);
}

async function happen(
  context: JobContext,
  place: { tenant: string; id: string },
  events: UploadEvent[],
): Promise<void> {
  const stepped = await step(context, place, () => events);
  if (!stepped) return;
  const { record } = stepped;
  if (isOver(record.state.status)) await settle(context, place);
  await release(context, place.tenant, record.request);
}
