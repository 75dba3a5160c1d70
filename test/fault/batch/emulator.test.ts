// The simulation's promise, on the real clients and the emulators: Azurite for blobs, rows and notices,
// fauxqs for jobs. The network between them loses requests and answers, is slow, and delivers writes twice,
// late or out of order; processes die before and after every call; the queue server and, with `SEEDS` of
// 10,000, the storage emulator are killed. Only the clock is the test's. Rounds of one batch run
// concurrently.
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStores, type Stores } from '../../../functions/store/stores.ts';
import { storageConnection } from '../../../infra/local/plan.ts';
import { type Stack, startStack } from '../../../infra/local/stack.ts';
import { jobQueue, readJob } from '../../../shared/jobs/job.ts';
import { randomOf } from '../../fake/random.ts';
import { temporaryFolder } from '../../infra/local/folder.ts';
import { seeds } from '../../seeds.ts';
import { kill } from '../streams/place.ts';
import { Round } from './emulator-round.ts';
import { type Fate, fates, openProxy, type RoughProxy } from './rough-proxy.ts';

const THOROUGH = seeds >= 10_000;
const BATCHES = THOROUGH ? 10 : 1;
const ROUNDS = THOROUGH ? 5 : 2;
const FILES = 4;
/** Steps of one batch, and the number after which faults stop. */
const LOOKS_MAX = 400;
const LOOKS_BAD = 8;
const BATCH_MS = 120_000;

const folder = temporaryFolder();
const weather = { calm: false };
const random = randomOf(1);
const ways: Record<string, RoughProxy> = {};
let stack: Stack;
let direct: Stores;
let stores: Stores;
let sqs: SQSClient;
let queue: string;

/** Fate of a write: a fifth of them have a fault. */
const fate = (): Fate =>
  weather.calm || random() < 0.8 ? 'whole' : (fates[1 + Math.floor(random() * (fates.length - 1))] as Fate);

const openAt = (ports: Record<string, number | undefined>): Stores =>
  openStores({
    STORAGE_CONNECTION: storageConnection(ports as Record<string, number>),
    SQS_ENDPOINT: `http://127.0.0.1:${ports.sqs}`,
    SQS_REGION: 'us-east-1',
    JOBS_QUEUE: 'jobs',
    ZONES: ['eu'],
    ZONE_KEYS: {},
    MODE: 'development',
  });

beforeAll(async () => {
  stack = await startStack({ port: 0, state: folder.path, parts: ['blob', 'sqs'] });
  process.env.AWS_ACCESS_KEY_ID = 'test';
  process.env.AWS_SECRET_ACCESS_KEY = 'test';
  direct = openAt(stack.ports);
  const signal = AbortSignal.timeout(10_000);
  const { rows, blobs, jobs, notices } = direct;
  await Promise.all([rows, blobs, jobs, notices].map((store) => store.ensure(signal)));
  for (const name of ['blob', 'queue', 'table', 'sqs']) {
    const target = stack.ports[name] as number;
    ways[name] = await openProxy({ target, fate, delay: () => 20 + random() * 130 });
  }
  stores = openAt(Object.fromEntries(Object.entries(ways).map(([name, { port }]) => [name, port])));
  sqs = new SQSClient({ region: 'us-east-1', endpoint: `http://127.0.0.1:${stack.ports.sqs}`, maxAttempts: 10 });
  queue = (await sqs.send(new CreateQueueCommand({ QueueName: jobQueue('jobs', 'eu', 'm') }))).QueueUrl as string;
});
afterAll(async () => {
  sqs?.destroy();
  await Promise.all(Object.values(ways).map((way) => way.close()));
  await stack?.stop();
  folder.remove();
});

/** Agents take the waiting jobs. A job of a tenant outside the batch is ignored. */
async function takeJobs(rounds: readonly Round[]): Promise<void> {
  const receive = { QueueUrl: queue, MaxNumberOfMessages: 10, VisibilityTimeout: 1, WaitTimeSeconds: 0 };
  const { Messages = [] } = await sqs.send(new ReceiveMessageCommand(receive));
  await Promise.all(
    Messages.map(async ({ Body = '', ReceiptHandle }: Message) => {
      const job = readJob(Body);
      const round = rounds.find(({ tenant }) => tenant === job?.tenant);
      const done = !job || !round || (await round.attempt(() => round.work(job)));
      if (done) await sqs.send(new DeleteMessageCommand({ QueueUrl: queue, ReceiptHandle }));
    }),
  );
}

/** Kills a part; the batch decides which one and when. */
async function killOne(batch: number): Promise<void> {
  const part = batch % 2 === 0 ? 'sqs' : 'blob';
  await kill(stack, part);
  await expect.poll(() => stack.isReady(part), { timeout: 30_000 }).toBe(true);
}

describe('T4: batches of uploads on the emulators', () => {
  it.each(Array.from({ length: BATCHES }, (_, index) => index))(
    `none lost, none twice, nothing left, all booked: ${ROUNDS} rounds of batch %i`,
    async (batch) => {
      weather.calm = false;
      const rounds = Array.from(
        { length: ROUNDS },
        (_, index) => new Round(1 + batch * ROUNDS + index, stores, direct, weather),
      );
      await Promise.all(rounds.map((round) => round.sendAll(FILES)));
      let killed: Promise<void> | undefined;
      let whole = false;
      const isOpen = async () => (await Promise.all(rounds.map((round) => round.isOpen()))).includes(true);
      // An observer bypasses the network, but gets no answer either while a server is down.
      const stillOpen = () => isOpen().catch(() => true);
      for (let look = 1; !whole || (await stillOpen()); look += 1) {
        expect(look).toBeLessThan(LOOKS_MAX);
        if (look === 2 + (batch % 7)) {
          killed = killOne(batch).then(() => {
            whole = true;
          });
        }
        if (look > LOOKS_BAD && whole) weather.calm = true;
        const { calm } = weather;
        await takeJobs(rounds).catch((error: unknown) => {
          // A killed server is down for a moment.
          if (calm) throw error;
        });
        await Promise.all(rounds.map((round) => round.look(look)));
      }
      await killed;
      weather.calm = true;
      // Delayed requests arrive before the check that nothing is left.
      await Promise.all(Object.values(ways).map((way) => way.idle()));
      for (const round of rounds) await round.check();
    },
    BATCH_MS,
  );

  it('every fate has struck at blobs, rows and jobs', () => {
    const struck = (name: string) => fates.filter((one) => (ways[name]?.counts[one] ?? 0) > 0);
    if (THOROUGH) for (const name of ['blob', 'table', 'sqs']) expect(struck(name), name).toEqual([...fates]);
    else expect(struck('table').length).toBeGreaterThan(2);
  });
});
