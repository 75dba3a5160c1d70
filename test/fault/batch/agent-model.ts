// Agent of a simulated run: takes jobs, opens them, writes outcomes, and may die between any two of these.
import { openTakenJob } from '../../../functions/jobs/open-job.ts';
import { readJob, type UploadJob } from '../../../shared/jobs/job.ts';
import { type OutcomeFacts, outcomeMetadataOf } from '../../../shared/jobs/outcome.ts';
import type { OpenedJob } from '../../../shared/jobs/upload-contract.ts';
import { call, type Life, type Message, Outage, type QueueModel, rough } from '../../fake/storage.ts';
import { performSpeech } from '../project/speech-model.ts';
import type { Simulation } from './simulation.ts';

/** Transcript of the agent double: the version of the file, and each piece once, in order. */
export interface ModelTranscript {
  readonly etag: string;
  readonly pieces: readonly number[];
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const decode = <T>(bytes: Uint8Array): T => JSON.parse(new TextDecoder().decode(bytes)) as T;

export async function runAgent(simulation: Simulation, zone: string, queue: QueueModel, name: string): Promise<void> {
  const { world } = simulation;
  while (!simulation.over) {
    const message = queue.receive();
    if (!message) {
      await queue.wait();
      continue;
    }
    const life: Life = { calls: world.bad(0.1) ? world.between(1, 10) : Number.POSITIVE_INFINITY };
    try {
      await work(simulation, zone, queue, name, message, life);
    } catch (error) {
      // The job stays in the queue and reappears when its visibility timeout ends.
      if (!(error instanceof Outage)) throw error;
      await world.sleep(world.between(0, 30_000));
    }
  }
}

async function work(
  simulation: Simulation,
  zone: string,
  queue: QueueModel,
  agent: string,
  message: Message,
  life: Life,
): Promise<void> {
  const { world } = simulation;
  const job = readJob(message.body);
  if (!job) throw new Error('no job');
  const opened = await openTakenJob(simulation.office(life), job, { agent, pool: 'p', zone });
  if (opened.ok) {
    await world.sleep(world.between(0, world.bad(0.1) ? 300_000 : 20_000));
    await perform(simulation, life, job, opened.value);
  } else if (!['upload_status_wrong', 'upload_unknown'].includes(opened.refusal.reason)) {
    throw new Error(opened.refusal.reason);
  }
  await call(world, life, rough, () => queue.remove(message));
}

async function perform(simulation: Simulation, life: Life, job: UploadJob, opened: OpenedJob): Promise<void> {
  const { world, blobs } = simulation;
  const read = (name: string) => call(world, life, rough, () => blobs.get(opened.read[name]?.url ?? ''));
  const write = (name: string, content: unknown, facts: OutcomeFacts) =>
    call(world, life, rough, () => blobs.put(opened.write[name]?.url ?? '', encode(content), outcomeMetadataOf(facts)));
  if (opened.upload.speech) return performSpeech(job, opened, read, write);
  const refuse = (reason: 'upload_changed' | 'audio_unsupported') => write('refusal', '', { refusal: { reason } });

  if (job.kind === 'plan') {
    const file = await read('upload');
    const { etag } = opened.read.upload ?? {};
    if (!file || file.etag !== etag) return void (await refuse('upload_changed'));
    const sound = file.content.slice(opened.upload.sealed ? file.content.lastIndexOf(123) : 0);
    const { pieces } = decode<{ pieces: number | 'bad' }>(sound);
    if (pieces === 'bad') return void (await refuse('audio_unsupported'));
    if (pieces === 1) {
      const transcript: ModelTranscript = { etag: file.etag, pieces: [0] };
      return void (await write('transcript', transcript, { pieces: 1, seconds: 1 }));
    }
    for (let piece = 0; piece < pieces; piece += 1) await write(`pieces/${piece}`, { etag: file.etag, piece }, {});
    return void (await write('plan', { etag: file.etag }, { pieces, seconds: pieces * 600 }));
  }
  if (job.kind === 'work') {
    const name = `pieces/${job.piece}`;
    const piece = await read(name);
    // Removed meanwhile: the next opening of the job says that it is obsolete.
    if (!piece) throw new Outage('gone');
    return void (await write(`results/${job.piece}`, decode(piece.content), { seconds: 600 }));
  }
  const parts: { etag: string; piece: number }[] = [];
  for (let piece = 0; piece < opened.upload.pieces; piece += 1) {
    const result = await read(`results/${piece}`);
    if (!result) throw new Outage('gone');
    parts.push(decode(result.content));
  }
  const transcript: ModelTranscript = { etag: parts[0]?.etag ?? '', pieces: parts.map(({ piece }) => piece) };
  await write('transcript', transcript, { seconds: parts.length * 600 });
}
