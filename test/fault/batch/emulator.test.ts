// The same promise as in the simulation, on the real clients and the emulators: Azurite for blobs, rows and notices,
// fauxqs for jobs. Calls fail before and after they have happened, events get lost and come twice, agents die with a job
// in hand, the queue server is killed; only the clock is the test's. `SEEDS` of 10,000 makes 50 rounds of it.
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStores, type Stores } from '../../../functions/stores.ts';
import { arrive } from '../../../functions/upload/arrive.ts';
import { see } from '../../../functions/upload/asked.ts';
import { grant } from '../../../functions/upload/grant.ts';
import { lookAfter } from '../../../functions/upload/look-after.ts';
import type { Office } from '../../../functions/upload/office.ts';
import { openTakenJob } from '../../../functions/upload/open-job.ts';
import { takeOutcome } from '../../../functions/upload/take-outcome.ts';
import { storageConnection } from '../../../infra/local/plan.ts';
import { type Stack, startStack } from '../../../infra/local/stack.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import type { NewUpload, OpenedJob, UploadRow } from '../../../shared/upload/contract.ts';
import { jobQueue, readJob, type UploadJob } from '../../../shared/upload/job.ts';
import { type OutcomeFacts, outcomeMetadataOf } from '../../../shared/upload/outcome.ts';
import { isOver } from '../../../shared/upload/state.ts';
import { temporaryFolder } from '../../infra/local/folder.ts';
import { admitHead } from './sealed-head.ts';
import { KEY, Ledger } from './simulation.ts';
import { Outage } from './storage-model.ts';
import { chance } from './world.ts';

const ROUNDS = Number(process.env.SEEDS ?? 200) >= 10_000 ? 50 : 3;
const FILES = 5;
/** Looks at everything in one round, and how much later each is by the test's clock. */
const LOOKS_MAX = 300;
const LOOK_MS = 20_000;
const ROUND_MS = 60_000;

const folder = temporaryFolder();
let stack: Stack;
let stores: Stores;
let sqs: SQSClient;
let queue: string;

beforeAll(async () => {
  stack = await startStack({ port: 0, state: folder.path, quiet: true, parts: ['blob', 'sqs'] });
  process.env.AWS_ACCESS_KEY_ID = 'test';
  process.env.AWS_SECRET_ACCESS_KEY = 'test';
  const endpoint = `http://127.0.0.1:${stack.ports.sqs}`;
  stores = openStores({
    STORAGE_CONNECTION: storageConnection(stack.ports),
    SQS_ENDPOINT: endpoint,
    SQS_REGION: 'us-east-1',
    JOBS_QUEUE: 'jobs',
    ZONES: ['eu'],
    ZONE_KEYS: {},
    MODE: 'development',
  });
  const signal = AbortSignal.timeout(10_000);
  const { rows, blobs, jobs, notices } = stores;
  await Promise.all([rows, blobs, jobs, notices].map((store) => store.ensure(signal)));
  sqs = new SQSClient({ region: 'us-east-1', endpoint, maxAttempts: 10 });
  queue = (await sqs.send(new CreateQueueCommand({ QueueName: jobQueue('jobs', 'eu', 'm') }))).QueueUrl as string;
});
afterAll(async () => {
  sqs?.destroy();
  await stack?.stop();
  folder.remove();
});

class Round {
  readonly random: () => number;
  readonly tenant: string;
  readonly seen = new Set<string>();
  readonly office: Office;
  readonly ledger = new Ledger();
  calm = false;
  skew = 0;

  constructor(seed: number) {
    this.random = chance(seed);
    this.tenant = `round-${seed}`;
    this.office = {
      settings: { ZONES: ['eu'], ZONE_KEYS: { eu: [KEY] }, MODE: 'development', WEBHOOK_KEY: undefined },
      now: () => Date.now() + this.skew,
      log: () => {},
      rows: this.shaky(stores.rows),
      blobs: this.shaky(stores.blobs),
      jobs: this.shaky(stores.jobs),
      notices: this.shaky(stores.notices),
      usage: this.shaky({ tell: async (usage) => this.ledger.tell(usage) }),
    };
  }

  bad(probability: number): boolean {
    return !this.calm && this.random() < probability;
  }

  /** Every call may fail, or fail but have happened. */
  shaky<T extends object>(store: T): T {
    return new Proxy(store, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]) => {
          if (this.bad(0.03)) throw new Outage('failed');
          const result: unknown = await method.apply(target, args);
          if (this.bad(0.03)) throw new Outage('failed, but had happened');
          return result;
        };
      },
    });
  }

  async insist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (this.calm) throw error;
      }
    }
  }

  /** A client, which sends its file at once or by blocks. */
  async send(number: number): Promise<NewUpload> {
    const random = Uint8Array.from({ length: 10 }, () => Math.floor(this.random() * 256));
    const upload: NewUpload = {
      id: eventId(Date.now(), random),
      tenant: this.tenant,
      class: 'batch',
      model: 'm',
      sealed: number % 2 === 0,
      formats: ['json'],
      zone: 'eu',
      keepDays: 0,
    };
    const granted = await this.insist(() => grant(this.office, upload));
    if (!granted.ok) throw new Error(granted.refusal.reason);
    const sound = new TextEncoder().encode(JSON.stringify({ pieces: 1 + (number % 4) }));
    const content = upload.sealed ? Buffer.concat([admitHead(this.tenant, upload.id, KEY.kid), sound]) : sound;
    const { url, headers } = granted.value;
    const put = async (to: string, body: Uint8Array | string, more: Record<string, string> = {}) => {
      const response = await fetch(to, { method: 'PUT', headers: more, body: body as BodyInit });
      expect(response.status).toBe(201);
    };
    if (number % 3 > 0) await put(url, content, headers);
    else {
      const blocks = [content.slice(0, 3), content.slice(3)];
      for (const [index, block] of blocks.entries()) await put(`${url}&comp=block&blockid=${btoa(`b${index}`)}`, block);
      const list = blocks.map((_, index) => `<Latest>${btoa(`b${index}`)}</Latest>`).join('');
      await put(`${url}&comp=blocklist`, `<?xml version="1.0"?><BlockList>${list}</BlockList>`);
    }
    return upload;
  }

  /** New blobs, as events would tell of them: some never, some twice. */
  async events(): Promise<void> {
    for (const container of ['uploads', 'outcomes'] as const) {
      for (const { name, etag } of await stores.blobs.list(container, `${this.tenant}/`)) {
        const version = `${container}/${name} ${etag}`;
        if (this.seen.has(version)) continue;
        const tell = () => (container === 'uploads' ? arrive(this.office, name) : takeOutcome(this.office, name));
        try {
          const times = this.bad(0.1) ? 0 : this.bad(0.2) ? 2 : 1;
          await Promise.all(Array.from({ length: times }, tell));
          this.seen.add(version);
        } catch (error) {
          // The platform tries again; others being faster too often is an ordinary failure.
          if (this.calm) throw error;
        }
      }
    }
  }

  async agents(): Promise<void> {
    const receive = { QueueUrl: queue, MaxNumberOfMessages: 10, VisibilityTimeout: 1, WaitTimeSeconds: 0 };
    const { Messages = [] } = await sqs.send(new ReceiveMessageCommand(receive));
    await Promise.all(
      Messages.map(async (message: Message) => {
        try {
          const job = readJob(message.Body ?? '');
          // Of an earlier round: nobody wants it any more.
          if (job?.tenant === this.tenant) await this.work(job);
          await sqs.send(new DeleteMessageCommand({ QueueUrl: queue, ReceiptHandle: message.ReceiptHandle }));
        } catch (error) {
          if (this.calm) throw error;
        }
      }),
    );
  }

  async work(job: UploadJob): Promise<void> {
    const opened = await openTakenJob(this.office, job, { agent: 'a', pool: 'p', zone: 'eu' });
    if (!opened.ok) return;
    const { value } = opened;
    if (job.kind === 'plan') {
      const { etag = '' } = value.read.upload ?? {};
      const file = await this.read(value, 'upload', { 'if-match': etag });
      const { pieces } = JSON.parse(file.slice(file.lastIndexOf('{'))) as { pieces: number };
      if (pieces === 1) return this.write(value, 'transcript', [0], { pieces });
      for (let piece = 0; piece < pieces; piece += 1) await this.write(value, `pieces/${piece}`, piece, {});
      return this.write(value, 'plan', pieces, { pieces });
    }
    if (job.kind === 'work') {
      const piece = JSON.parse(await this.read(value, `pieces/${job.piece}`)) as number;
      return this.write(value, `results/${job.piece}`, piece, {});
    }
    const results: unknown[] = [];
    for (let piece = 0; piece < value.upload.pieces; piece += 1) {
      results.push(JSON.parse(await this.read(value, `results/${piece}`)));
    }
    return this.write(value, 'transcript', results, {});
  }

  async read(job: OpenedJob, name: string, headers: Record<string, string> = {}): Promise<string> {
    if (this.bad(0.05)) throw new Outage('the agent died');
    const response = await fetch(job.read[name]?.url ?? '', { headers });
    if (response.status !== 200) throw new Outage(`${response.status}`);
    return response.text();
  }

  async write(job: OpenedJob, name: string, content: unknown, facts: OutcomeFacts): Promise<void> {
    if (this.bad(0.05)) throw new Outage('the agent died');
    const metadata = Object.entries(outcomeMetadataOf(facts)).map(([key, value]) => [`x-ms-meta-${key}`, value]);
    const headers = { 'x-ms-blob-type': 'BlockBlob', 'if-none-match': '*', ...Object.fromEntries(metadata) };
    const response = await fetch(job.write[name]?.url ?? '', { method: 'PUT', headers, body: JSON.stringify(content) });
    expect([201, 403, 409]).toContain(response.status);
    if (this.bad(0.05)) throw new Outage('the agent died');
  }

  async status(upload: NewUpload): Promise<UploadRow> {
    const seen = await see({ ...this.office, rows: stores.rows }, upload);
    if (!seen.ok) throw new Error(seen.refusal.reason);
    return seen.value;
  }
}

describe('T4: a batch of uploads on the emulators', () => {
  it.each(Array.from({ length: ROUNDS }, (_, index) => index + 1))(
    'none lost, none twice, nothing left: round %i',
    async (seed) => {
      const round = new Round(seed);
      const uploads = await Promise.all(Array.from({ length: FILES }, (_, number) => round.send(seed + number)));
      const open = async () => {
        const rows = await Promise.all(uploads.map((upload) => round.status(upload)));
        return rows.filter(({ status, audio }) => !isOver(status) || audio === 'held').length;
      };
      for (let look = 1; (await open()) > 0; look += 1) {
        expect(look).toBeLessThan(LOOKS_MAX);
        if (look === 3 && seed % 5 === 1) stack.kill('sqs');
        if (look > 40 && stack.isReady('sqs')) round.calm = true;
        await round.events();
        await round.agents().catch((error: unknown) => {
          // A killed server is away for a moment.
          if (round.calm) throw error;
        });
        round.skew += LOOK_MS;
        if (look % 3 === 0) {
          await lookAfter(round.office, round.tenant).catch((error: unknown) => {
            if (round.calm) throw error;
          });
        }
      }
      round.calm = true;
      round.skew += 25 * 3_600_000;
      await lookAfter(round.office, round.tenant);
      for (const [number, upload] of uploads.entries()) {
        const row = await round.status(upload);
        const pieces = 1 + ((seed + number) % 4);
        expect([row.status, row.audio, row.transcript, row.pieces]).toEqual(['done', 'deleted', 'held', pieces]);
        const address = await stores.blobs.address(
          'outcomes',
          `${round.tenant}/${upload.id}/1/transcript`,
          'read',
          Date.now() + 60_000,
        );
        expect(await (await fetch(address)).json()).toEqual(Array.from({ length: pieces }, (_, piece) => piece));
      }
      expect(await stores.blobs.list('uploads', `${round.tenant}/`)).toEqual([]);
      expect(await stores.blobs.list('outcomes', `${round.tenant}/`)).toHaveLength(FILES);
      for (const mark of ['o!', 'q!', 'w!'])
        expect(await stores.rows.scan(round.tenant, mark, `${mark}~`, 10)).toEqual([]);
    },
    ROUND_MS,
  );
});
