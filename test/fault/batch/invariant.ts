// Invariant after the faults: nothing lost, nothing twice, every byte accounted for.
import { readRecord, type UploadRecord } from '../../../functions/jobs/record.ts';
import { isOver } from '../../../shared/jobs/state.ts';
import { usageKey } from '../../../shared/jobs/usage.ts';
import type { ModelTranscript } from './agent-model.ts';
import type { Simulation } from './simulation.ts';

/** Returns all violations, as sentences. */
export function findWrong(simulation: Simulation): string[] {
  const { table, blobs, sent, queues } = simulation;
  const wrong: string[] = [];
  const records = new Map<string, UploadRecord>();
  const expected = new Set<string>();
  for (const [tenant, rows] of table.partitions) {
    for (const key of rows.keys()) {
      const row = table.read(tenant, key);
      if (!row) continue;
      if (key.startsWith('u!')) records.set(readRecord(row).id, readRecord(row));
      if (/^[boqw]!/.test(key)) wrong.push(`a row is left: ${key}`);
    }
  }
  for (const { upload, accepted } of sent) {
    const record = records.get(upload.id);
    if (!record) {
      wrong.push(`${upload.id} has no row`);
      continue;
    }
    const { state, transcript, audio, notice } = record;
    if (!isOver(state.status)) wrong.push(`${upload.id} is ${state.status}`);
    if (accepted && state.status === 'expired') wrong.push(`${upload.id} was sent, and is expired`);
    for (let run = 1; run <= state.run; run += 1) {
      const ends = simulation.ends.get(`${upload.id}.${run}`) ?? 0;
      if (ends !== 1) wrong.push(`${upload.id} run ${run} ended ${ends} times`);
    }
    wrong.push(...findUnbooked(simulation, record));
    if (transcript === 'held') {
      const place = `outcomes/${upload.tenant}/${upload.id}/${state.run}/transcript`;
      expected.add(place);
      const blob = blobs.blobs.get(place);
      if (state.status !== 'done' || !blob) wrong.push(`${upload.id} has no transcript`);
      else {
        const { etag, pieces } = JSON.parse(new TextDecoder().decode(blob.content)) as ModelTranscript;
        if (etag !== state.etag) wrong.push(`${upload.id}: of another version of the file`);
        if (pieces.join() !== Array.from({ length: state.pieces }, (_, piece) => piece).join())
          wrong.push(`${upload.id}: pieces ${pieces.join()}`);
      }
    } else if (state.status === 'done' && transcript !== 'deleted') wrong.push(`${upload.id}: no transcript is held`);
    if (audio === 'held') wrong.push(`${upload.id}: its audio is held for ever`);
    if (upload.callback !== undefined) {
      const times = simulation.told.get(`upload_${upload.id}_${state.run}`) ?? 0;
      if (notice === 'pending' || notice === 'none') wrong.push(`${upload.id}: its notice is ${notice}`);
      if (notice === 'delivered' && times === 0) wrong.push(`${upload.id}: nobody was told`);
    }
  }
  for (const place of blobs.blobs.keys()) if (!expected.has(place)) wrong.push(`a blob is left: ${place}`);
  const held = [...blobs.blobs.values()].reduce((sum, { content }) => sum + content.length, 0);
  if (blobs.written - blobs.removed !== held)
    wrong.push(`${blobs.written} bytes came, ${blobs.removed} went, ${held} are there`);
  for (const [zone, { messages }] of queues)
    if (messages.length > 0) wrong.push(`${messages.length} jobs are left in ${zone}`);
  return wrong;
}

/** Checks that each run's usage is booked exactly, and none of runs without a file. */
function findUnbooked({ ledger }: Simulation, { id, state, request }: UploadRecord): string[] {
  const wrong: string[] = [];
  for (let run = 1; run <= state.run; run += 1) {
    const booked = ledger.booked.get(usageKey({ upload: id, run }));
    if (!booked && state.bytes !== undefined) wrong.push(`${id} run ${run} is not booked`);
    if (booked && state.bytes === undefined) wrong.push(`${id} run ${run} is booked, and had no file`);
    if (!booked || run < state.run) continue;
    const seconds = state.status === 'done' ? state.seconds : 0;
    if (booked.seconds !== seconds || booked.bytes !== state.bytes || booked.model !== request.model)
      wrong.push(`${id}: booked ${booked.seconds} s and ${booked.bytes} bytes, had ${seconds} and ${state.bytes}`);
  }
  return wrong;
}
