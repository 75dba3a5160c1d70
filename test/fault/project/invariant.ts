// Invariant of projects after the faults.
import { readRecord, recordKey, type UploadRecord } from '../../../functions/jobs/record.ts';
import { inEdition } from '../../../shared/jobs/paths.ts';
import { documentId } from '../../../shared/jobs/project-id.ts';
import { isOver } from '../../../shared/jobs/state.ts';
import type { MadeProject, ProjectSimulation } from './project-simulation.ts';
import { contentOf, type ModelSpeech } from './speech-model.ts';

/** Returns all violations, as sentences. */
export function findWrong(simulation: ProjectSimulation): string[] {
  const wrong: string[] = [];
  const expected = new Set<string>();
  for (const rows of simulation.table.partitions.values())
    for (const key of rows.keys()) if (/^[boqw]!/.test(key)) wrong.push(`a row is left: ${key}`);
  for (const made of simulation.made) wrong.push(...findWrongIn(simulation, made, expected));
  for (const place of simulation.blobs.blobs.keys()) if (!expected.has(place)) wrong.push(`a blob is left: ${place}`);
  for (const place of expected) if (!simulation.blobs.blobs.has(place)) wrong.push(`a blob is missing: ${place}`);
  for (const [zone, { messages }] of simulation.queues)
    if (messages.length > 0) wrong.push(`${messages.length} jobs are left in ${zone}`);
  return wrong;
}

function findWrongIn(simulation: ProjectSimulation, made: MadeProject, expected: Set<string>): string[] {
  const { tenant, id, callback } = made.asked;
  const read = (one: string): UploadRecord | undefined => {
    const row = simulation.table.read(tenant, recordKey(one));
    return row && readRecord(row);
  };
  const project = read(id);
  const documents = made.texts.map((_, index) => read(documentId(id, index)));
  if (!project || documents.includes(undefined)) return [`${id} has no row, or a document of it has none`];
  const all = documents as UploadRecord[];
  const wrong: string[] = [];
  const { state, notice } = project;
  if (!isOver(state.status)) wrong.push(`${id} is ${state.status}`);
  if (made.deleted && state.status !== 'cancelled') wrong.push(`${id} was deleted, and is ${state.status}`);
  for (let run = 1; run <= state.run; run += 1) {
    const ends = simulation.projectEnds.get(`${id}.${run}`) ?? 0;
    if (ends !== 1) wrong.push(`${id} run ${run} ended ${ends} times`);
  }
  if (state.status !== 'cancelled') {
    const good = all.every((one) => one.state.status === 'done');
    if (good !== (state.status === 'done')) wrong.push(`${id} is ${state.status}, its documents are not`);
    const editions = all.reduce((sum, one) => sum + (one.state.edition ?? 0), 0);
    if (editions !== state.edition) wrong.push(`${id} ended before its last change`);
  }
  if (callback !== undefined) {
    if (notice === 'pending' || notice === 'none') wrong.push(`${id}: its notice is ${notice}`);
    if (notice === 'delivered' && !simulation.told.has(`project_${id}_${state.run}`))
      wrong.push(`${id}: nobody was told of run ${state.run}`);
  }
  for (const [index, document] of all.entries())
    wrong.push(...findWrongDocument(simulation, made, index, document, state.status === 'cancelled', expected));
  return wrong;
}

function findWrongDocument(
  simulation: ProjectSimulation,
  made: MadeProject,
  index: number,
  { tenant, id, state, transcript }: UploadRecord,
  gone: boolean,
  expected: Set<string>,
): string[] {
  const wrong: string[] = [];
  if (!isOver(state.status)) return [`document ${id} is ${state.status}`];
  if (made.sent[index] && state.status === 'expired') wrong.push(`document ${id} was sent, and is expired`);
  if (gone) return transcript === 'held' ? [`document ${id} is held after its project was deleted`] : wrong;
  const { edits = {}, edition = 0, pieces } = state;
  const place = (name: string) => `outcomes/${tenant}/${id}/1/${name}`;
  if (pieces > 0) expected.add(place('plan'));
  for (let piece = 0; piece < pieces; piece += 1) {
    expected.add(place(inEdition(`pieces/${piece}`, edits[piece] ?? 0)));
    if (state.done.includes(piece)) expected.add(place(inEdition(`results/${piece}`, edits[piece] ?? 0)));
  }
  for (const edit of made.edits.filter((one) => one.document === index))
    if ((edits[edit.segment] ?? 0) < edit.edition) wrong.push(`${id}: the change ${edit.text} was lost`);
  if (state.status !== 'done') return wrong;
  const sound = place(inEdition('transcript', edition));
  expected.add(sound);
  const blob = simulation.blobs.blobs.get(sound);
  if (!blob) return [...wrong, `document ${id} has no sound`];
  const { texts } = contentOf<ModelSpeech>(blob.content);
  const right = Array.from({ length: pieces }, (_, piece) =>
    textOf(simulation, made, index, piece, edits[piece] ?? 0, place),
  );
  if (texts.join() !== right.join()) wrong.push(`document ${id} says ${texts.join()}, not ${right.join()}`);
  return wrong;
}

/** Returns the expected text: the first one, an acknowledged edit, or the stored one. */
function textOf(
  simulation: ProjectSimulation,
  made: MadeProject,
  index: number,
  piece: number,
  edition: number,
  place: (name: string) => string,
): string {
  if (edition === 0) return `${made.texts[index]?.name}.${piece}`;
  const heard = made.edits.find((one) => one.document === index && one.segment === piece && one.edition === edition);
  const blob = simulation.blobs.blobs.get(place(`pieces/${piece}-${edition}`));
  return heard?.text ?? (blob ? contentOf<{ text: string }>(blob.content).text : 'nothing');
}
