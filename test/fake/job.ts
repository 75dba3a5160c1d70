import { createDecoder } from '../../infra/pool/agent/asr/decode/decoder.ts';
import type { Dispatcher } from '../../infra/pool/agent/engine/dispatch.ts';
import { doJob, type JobEnd } from '../../infra/pool/agent/jobs/do-job.ts';
import type { Workshop } from '../../infra/pool/agent/jobs/task/task.ts';
import { openSealed } from '../../infra/pool/agent/storage/files.ts';
import type { Storage } from '../../infra/pool/agent/storage/storage.ts';
import { readsOf, type UploadJob, writesOf } from '../../shared/jobs/job.ts';
import type { OutcomeName } from '../../shared/jobs/paths.ts';
import type { OpenedJob } from '../../shared/jobs/upload-contract.ts';
import { fp32Tensor, int32Tensor } from '../../shared/kserve/tensor.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { sealSmall } from '../../shared/seal/envelope-stream.ts';
import { generateZoneKey, importZoneKey, type ZoneKey } from '../../shared/seal/zone-key.ts';
import { spell, tokens } from './engine.ts';

export const UPLOAD = '0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b';
export const revision = `sha256:${'0'.repeat(64)}`;

export interface Stored {
  readonly bytes: Uint8Array;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Faults of a blob by its name below the run, each used once. */
export type Trouble =
  | 'lost'
  | 'persisted'
  | 'cut'
  | 'changed'
  /** The address does not write any more, and has not. */
  | 'closed'
  /** The write succeeds, and its answer is lost. */
  | 'spent';

export interface FakeJob {
  readonly shop: Workshop;
  readonly zone: ZoneKey;
  /** By name: `upload`, `1/plan`, `1/results/0`. */
  readonly blobs: Map<string, Stored>;
  readonly troubles: { name: string; trouble: Trouble }[];
  readonly written: string[];
  /** Reads of each blob, in order. */
  readonly reads: string[];
  /** Blobs that are being read: neither read to their end nor let go. */
  readonly reading: Set<object>;
  /** Returns the text of an utterance by its length in samples and its number. */
  say: (samples: number, number: number) => string;
  /** Why the engine answers otherwise, once each. */
  readonly refusals: Refusal[];
  /** Row of the upload. */
  readonly row: OpenedJob['upload'];
  /** The upload is no longer wanted. */
  unwanted: boolean;
  job(kind: UploadJob['kind'], piece?: number): UploadJob;
  do(kind: UploadJob['kind'], piece?: number, signal?: AbortSignal): Promise<JobEnd>;
  /** Plan, all work, merge, as the queue would ask for it. */
  doAll(): Promise<JobEnd>;
  /** Puts the file there as its owner would. */
  upload(file: Uint8Array, sealed?: boolean): Promise<void>;
  /** Plaintext of an outcome of the first run. */
  open(name: OutcomeName): Promise<string>;
  lines(name: OutcomeName): Promise<Record<string, unknown>[]>;
}

const streamOf = (bytes: Uint8Array, chunk: number): ReadableStream<Uint8Array> => {
  let at = 0;
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.subarray(at, at + chunk));
        at += chunk;
      },
    },
    { highWaterMark: 0 },
  );
};

/** A bench with everything around it that a job meets: storage, back office, zone key and engine. */
export async function makeShop(options: { pieceSeconds?: number } = {}): Promise<FakeJob> {
  const { zoneKey: zone, privateJwk } = await generateZoneKey();
  const held = new Map([[zone.kid, await importZoneKey(privateJwk)]]);
  const blobs = new Map<string, Stored>();
  const troubles: FakeJob['troubles'] = [];
  const written: string[] = [];
  const reads: string[] = [];
  const reading = new Set<object>();
  const refusals: Refusal[] = [];
  const row: OpenedJob['upload'] = {
    tenant: 'acme',
    id: UPLOAD,
    run: 1,
    model: 'test-en',
    class: 'batch',
    sealed: true,
    bytes: 0,
    formats: ['json'],
    zoneKeyId: zone.kid,
    pieces: 0,
  };
  let utterances = 0;

  const trouble = (name: string): Trouble | undefined => {
    const at = troubles.findIndex((one) => one.name === name);
    return at < 0 ? undefined : troubles.splice(at, 1)[0]?.trouble;
  };
  const gone = refuse('uploads_unavailable', undefined, 'storage: double');

  const storage: Storage = {
    read(at) {
      const name = at.url.slice('https://blob.test/'.length);
      const blob = blobs.get(name);
      let bytes = 0;
      let failure: Refusal | undefined;
      const what = trouble(name);
      if (!blob) failure = refuse('upload_audio_gone');
      if (what === 'changed') failure = refuse('upload_changed');
      if (what === 'lost') failure = gone;
      const source = streamOf(blob?.bytes ?? new Uint8Array(), 10_000).getReader();
      const body = new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            if (bytes === 0) {
              reads.push(name);
              reading.add(source);
            }
            if (what === 'cut' && bytes > 0) failure = gone;
            const { done, value } = failure ? { done: true, value: undefined } : await source.read();
            if (done) reading.delete(source);
            if (failure) return controller.error(new Error('double'));
            if (!value) return controller.close();
            bytes += value.length;
            controller.enqueue(value);
          },
          cancel: () => void reading.delete(source),
        },
        { highWaterMark: 0 },
      );
      return { body, bytes: () => bytes, failure: () => failure };
    },
    async write(url, content, metadata) {
      const name = url.slice('https://blob.test/'.length);
      written.push(name);
      const what = trouble(name);
      if (what === 'lost') return no(gone);
      if (what === 'closed') return ok('closed');
      if (blobs.has(name)) return ok('exists');
      const { length, body } = await content();
      const chunks: Uint8Array[] = [];
      for await (const chunk of body) chunks.push(chunk);
      const bytes = Buffer.concat(chunks);
      if (bytes.length !== length) throw new Error(`${name}: ${bytes.length} bytes, ${length} announced`);
      blobs.set(name, { bytes, metadata });
      if (what === 'spent') return ok('closed');
      return what === 'persisted' ? no(gone) : ok('written');
    },
  };

  async function open(job: UploadJob): Promise<Result<OpenedJob | undefined>> {
    if (double.unwanted) return ok(undefined);
    const at = (name: string) => ({ url: `https://blob.test/${name === 'upload' ? name : `${row.run}/${name}`}` });
    return ok({
      upload: { ...row },
      read: Object.fromEntries(readsOf(job, row.pieces, row.edits).map((name) => [name, at(name)])),
      write: Object.fromEntries(writesOf(job).map((name) => [name, at(name)])),
      expires: Date.now() + 3_600_000,
    });
  }

  const run: Dispatcher['run'] = async ({ inputs, signal }) => {
    await Promise.resolve();
    if (signal.aborted) return no(refuse('deadline_passed'));
    const refusal = refusals.shift();
    if (refusal) return no(refusal);
    const { logProbs, frames } = spell(double.say(inputs[0]?.shape[1] ?? 0, utterances++));
    return ok(
      new Map([
        ['LOG_PROBS', fp32Tensor('LOG_PROBS', logProbs, [1, frames, tokens.length])],
        ['FRAMES', int32Tensor('FRAMES', Int32Array.of(frames), [1, 1])],
      ]),
    );
  };

  const keyring: Workshop['keyring'] = {
    held: async () => ok(held),
    find: (kid) => (kid === zone.kid ? zone : undefined),
  };
  const description = {
    name: 'test-en',
    task: 'transcribe' as const,
    languages: ['en'],
    revision,
    precision: 'fp32' as const,
    stage: 'full' as const,
    loaded: 1,
  };
  const recogniser = {
    model: 'test-en',
    frameSeconds: 0.04,
    decoder: createDecoder({ tokens, blank: 0, wordBoundary: 1 }),
  };
  const shop: Workshop = {
    agent: 'agent-1',
    now: Date.now,
    jobsClient: { open },
    storage,
    keyring,
    detector: () => undefined,
    dispatcher: {
      run,
      hold: async (_, work) => work(),
      queued: () => ({ realtime: 0, interactive: 0, default: 0, batch: 0 }),
      busy: () => 0,
    },
    metrics: { utterance: () => {}, recorded: () => {} },
    model: (name) => (name === 'test-en' ? { description, recogniser } : undefined),
    lease: async (model) => ({ model, release() {} }),
    ...(options.pieceSeconds !== undefined && { pieceSamples: options.pieceSeconds * 16_000 }),
  };

  const double: FakeJob = {
    shop,
    zone,
    blobs,
    troubles,
    written,
    reads,
    reading,
    refusals,
    row,
    unwanted: false,
    say: () => 'hello',
    job: (kind, piece) => ({
      v: 1,
      kind,
      tenant: row.tenant,
      upload: row.id,
      run: row.run,
      ...(piece !== undefined && { piece }),
      attempt: 1,
      zone: 'eu',
      class: 'batch',
    }),
    do: (kind, piece, signal = new AbortController().signal) => doJob(shop, double.job(kind, piece), signal),
    async doAll() {
      const planned = await double.do('plan');
      const plan = blobs.get(`${row.run}/plan`);
      if (planned.type !== 'done' || !plan) return planned;
      row.pieces = Number(plan.metadata.pieces);
      for (let piece = 0; piece < row.pieces; piece++) {
        const end = await double.do('work', piece);
        if (end.type !== 'done') return end;
      }
      return double.do('merge');
    },
    async upload(file, sealed = true) {
      const facts = { tenant: row.tenant, upload: row.id, name: 'upload' };
      const bytes = sealed ? await sealSmall(facts, zone, file) : file;
      Object.assign(row, { sealed, bytes: bytes.length });
      blobs.set('upload', { bytes, metadata: {} });
    },
    async open(name) {
      const source = storage.read({ url: `https://blob.test/${row.run}/${name}` }, new AbortController().signal);
      const file = openSealed(source, { tenant: row.tenant, upload: row.id, name: `${row.run}/${name}` }, keyring);
      const chunks: Uint8Array[] = [];
      for await (const chunk of file.bytes) chunks.push(chunk);
      const wrong = file.wrong();
      if (wrong) throw new Error(`${name}: ${wrong.reason} ${wrong.detail}`);
      return Buffer.concat(chunks).toString('utf8');
    },
    lines: async (name) =>
      (await double.open(name))
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
  };
  return double;
}
