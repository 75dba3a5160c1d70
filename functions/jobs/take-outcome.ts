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
import { NO_LANGUAGE, servesLanguage } from '../../shared/pool/language.ts';
import { refuse } from '../../shared/refusal.ts';
import type { JobContext } from './context.ts';
import type { UploadRecord } from './record.ts';
import { release } from './release.ts';
import { settle } from './settle.ts';
import { readUpload, step } from './step.ts';

type Metadata = Readonly<Record<string, string>>;

/** A detected language, before its model is known. */
interface LanguageFound {
  readonly type: 'language';
  readonly run: number;
  readonly language: string;
  readonly confidence?: number | undefined;
}

type OutcomeEvent = UploadEvent | LanguageFound;

/** Chooses the member of the family for a detected language; refuses one that none serves in the zone. */
function inFamily({ request }: UploadRecord, event: OutcomeEvent): UploadEvent {
  if (event.type !== 'language') return event;
  const { run, language, confidence } = event;
  const { model: family, members = {}, languages } = request;
  const served = Object.keys(members).sort();
  // Any member can say that there is no speech.
  const of = served.find((one) => language === NO_LANGUAGE || servesLanguage([one], language));
  const model = of === undefined ? undefined : members[of];
  if (model !== undefined) return { type: 'detected', run, detected: { language, confidence, model } };
  const isListed = !languages || servesLanguage(languages, language);
  const rule = `the speech is in "${language}", and the request is for ${languages?.join(', ')}`;
  const refusal = isListed
    ? refuse('language_unknown', { model: family, language, languages: served.join(', ') })
    : refuse('language_needed', { rule });
  return { type: 'refused', run, refusal };
}

/** The event that an outcome is. `undefined`: it moves nothing (a piece), `unreadable`: no agent of ours wrote it. */
export function eventOf({ run, name }: OutcomePlace, metadata: Metadata): OutcomeEvent | 'unreadable' | undefined {
  if (name.startsWith('pieces/')) return undefined;
  const facts = readOutcome(metadata);
  if (!facts) return 'unreadable';
  const { seconds, warnings, pieces, blocks, refusal, language, confidence } = facts;
  const piece = pieceOf(name);
  const edition = editionOf(name);
  if (piece !== undefined) return { type: 'recognised', run, piece, edition };
  if (name.startsWith('transcript')) return { type: 'merged', run, edition, seconds, warnings };
  if (name === 'language') {
    return language === undefined ? 'unreadable' : { type: 'language', run, language, confidence };
  }
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
  const events: OutcomeEvent[] = [];
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
  events: OutcomeEvent[],
): Promise<void> {
  const stepped = await step(context, place, (record) => events.map((event) => inFamily(record, event)));
  if (!stepped) return;
  const { record, from } = stepped;
  if (isOver(record.state.status)) await settle(context, place);
  await release(context, place.tenant, record.request);
  // A detection frees a slot in the queue of the family.
  if (from.request.model !== record.request.model) await release(context, place.tenant, from.request);
}
