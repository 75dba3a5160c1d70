// Job queues: one for each model in each zone, and a dead-letter queue for each zone.
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  paginateListQueues,
  type QueueAttributeName,
  QueueDoesNotExist,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { deadQueue, jobQueue, lightQueue, type UploadJob, zoneQueues } from '../../shared/jobs/job.ts';
import { JOB_VISIBILITY_S } from '../../shared/jobs/limits.ts';

/** Tries of one call of SQS, the first included. */
const QUEUE_TRIES_MAX = 3;
/** Messages of one call: the limit of SQS. */
const QUEUE_BATCH_MAX = 10;
/** Time a dead letter under replay is invisible to others: long enough to send and delete it. */
const DEAD_INVISIBLE_S = 60;
/** Agents that may fail on a job before it goes to the dead-letter queue. */
export const JOB_RECEIVES_MAX = 5;

export interface DeadJob {
  readonly body: string;
  /** SQS receipt handle, for deletion. */
  readonly receipt: string;
}

/** Messages of a queue: visible, and received by an agent. */
export interface Messages {
  readonly waiting: number;
  readonly taken: number;
}

export interface Depth extends Messages {
  /** Messages in the dead-letter queue. */
  readonly dead: number;
}

/** The members of a job that name its queue. */
export type QueueOf = Pick<UploadJob, 'zone' | 'model' | 'light'>;

export interface Jobs {
  /** Creates missing queues; leaves existing ones alone. */
  ensure(signal: AbortSignal): Promise<void>;
  /**
   * Sends jobs to the queues of their zones. Returns the accepted ones; throws when the result is unknown.
   */
  send(jobs: readonly UploadJob[]): Promise<UploadJob[]>;
  depth(zone: string): Promise<Depth>;
  /** Counts the messages of the queue of a job; 0 when the queue does not exist. */
  messages(job: QueueOf): Promise<Messages>;
  /** Receives some dead jobs, hidden from other receivers for a minute. */
  takeDead(zone: string): Promise<DeadJob[]>;
  deleteDead(zone: string, job: DeadJob): Promise<void>;
}

export interface JobsPlace {
  readonly prefix: string;
  readonly region: string;
  readonly endpoint: string | undefined;
  readonly zones: readonly string[];
}

/** Opens the job queues of a place. */
export function openJobs(place: JobsPlace): Jobs {
  const { prefix, region, endpoint, zones } = place;
  // `endpoint` is passed as an option, never left to the environment: the client would then follow the host name inside
  // queue URLs, which no resolver knows.
  const client = new SQSClient({
    region,
    maxAttempts: QUEUE_TRIES_MAX,
    ...(endpoint !== undefined && { endpoint }),
  });
  const queueOf = ({ zone, light, model }: QueueOf) => (light ? lightQueue : jobQueue)(prefix, zone, model);
  const { addresses, find, deadOf, addressOf } = openQueues(client, prefix);
  return {
    async ensure(signal) {
      await Promise.all(zones.map((zone) => deadOf(zone, signal).then((known) => seen(client, known, signal))));
    },
    async send(jobs) {
      const taken: UploadJob[] = [];
      for (const [queue, ours] of Map.groupBy(jobs, queueOf)) {
        const QueueUrl = await addressOf(queue, ours[0]?.zone ?? '');
        for (let from = 0; from < ours.length; from += QUEUE_BATCH_MAX) {
          const some = ours.slice(from, from + QUEUE_BATCH_MAX);
          const Entries = some.map((job, index) => ({ Id: String(index), MessageBody: JSON.stringify(job) }));
          const sent = client.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
          // The queue was deleted: the next try creates it.
          sent.catch((error) => error instanceof QueueDoesNotExist && addresses.delete(queue));
          const { Successful = [] } = await sent;
          for (const { Id } of Successful) {
            const job = some[Number(Id)];
            if (job) taken.push(job);
          }
        }
      }
      return taken;
    },
    async depth(zone) {
      const counts = await Promise.all((await modelQueues(client, place, zone)).map((url) => count(client, url)));
      const [dead] = await count(client, await deadOf(zone));
      const sum = (at: 0 | 1) => counts.reduce((all, one) => all + one[at], 0);
      return { waiting: sum(0), taken: sum(1), dead };
    },
    async messages(job) {
      const name = queueOf(job);
      try {
        const address = addresses.get(name) ?? (await find(name));
        const [waiting, taken] = address === undefined ? [0, 0] : await count(client, address);
        return { waiting, taken };
      } catch (error) {
        if (!(error instanceof QueueDoesNotExist)) throw error;
        addresses.delete(name);
        return { waiting: 0, taken: 0 };
      }
    },
    async takeDead(zone) {
      const QueueUrl = await deadOf(zone);
      const receive = {
        QueueUrl,
        MaxNumberOfMessages: QUEUE_BATCH_MAX,
        VisibilityTimeout: DEAD_INVISIBLE_S,
      };
      const { Messages = [] } = await client.send(new ReceiveMessageCommand(receive));
      return Messages.map(({ Body = '', ReceiptHandle = '' }) => ({ body: Body, receipt: ReceiptHandle }));
    },
    async deleteDead(zone, { receipt }) {
      const QueueUrl = await deadOf(zone);
      await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: receipt }));
    },
  };
}

/** Finds and creates queues. Addresses are cached by queue name. */
function openQueues(client: SQSClient, prefix: string) {
  const addresses = new Map<string, string>();
  const find = async (name: string, abortSignal?: AbortSignal): Promise<string | undefined> => {
    try {
      const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: name }), withSignal(abortSignal));
      if (QueueUrl) addresses.set(name, QueueUrl);
      return QueueUrl;
    } catch (error) {
      if (error instanceof QueueDoesNotExist) return undefined;
      throw error;
    }
  };
  const create = async (
    name: string,
    Attributes: Record<string, string>,
    abortSignal?: AbortSignal,
  ): Promise<string> => {
    const made = await client.send(new CreateQueueCommand({ QueueName: name, Attributes }), withSignal(abortSignal));
    if (made.QueueUrl === undefined) throw new Error(`no address of the queue ${name}`);
    addresses.set(name, made.QueueUrl);
    return made.QueueUrl;
  };
  const deadOf = async (zone: string, signal?: AbortSignal): Promise<string> => {
    const name = deadQueue(prefix, zone);
    return addresses.get(name) ?? (await find(name, signal)) ?? (await create(name, {}, signal));
  };
  /** Returns the queue's address; creates the queue of a model with its first job. */
  const addressOf = async (name: string, zone: string): Promise<string> => {
    const known = addresses.get(name) ?? (await find(name));
    if (known !== undefined) return known;
    const { QueueArn } = await readFacts(client, await deadOf(zone), ['QueueArn']);
    return create(name, {
      VisibilityTimeout: String(JOB_VISIBILITY_S),
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn: QueueArn, maxReceiveCount: JOB_RECEIVES_MAX }),
    });
  };
  return { addresses, find, deadOf, addressOf };
}

async function readFacts(client: SQSClient, QueueUrl: string, AttributeNames: QueueAttributeName[]) {
  return (await client.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames }))).Attributes ?? {};
}

/** Counts visible and received messages. */
async function count(client: SQSClient, QueueUrl: string): Promise<[number, number]> {
  const names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const;
  const facts = await readFacts(client, QueueUrl, [...names]);
  return [Number(facts[names[0]] ?? 0), Number(facts[names[1]] ?? 0)];
}

/**
 * Returns the addresses of a zone's model queues, without those of zones whose name has this one as a
 * prefix.
 */
async function modelQueues(client: SQSClient, { prefix, zones }: JobsPlace, zone: string): Promise<string[]> {
  const begin = zoneQueues(prefix, zone);
  const others = zones.map((other) => zoneQueues(prefix, other)).filter((other) => other.length > begin.length);
  const found: string[] = [];
  const pages = paginateListQueues({ client, pageSize: 1_000 }, { QueueNamePrefix: begin });
  for await (const { QueueUrls = [] } of pages) found.push(...QueueUrls);
  return found.filter((address) => {
    const name = address.slice(address.lastIndexOf('/') + 1);
    return (
      name.startsWith(begin) && name !== deadQueue(prefix, zone) && !others.some((other) => name.startsWith(other))
    );
  });
}

/** Probes the queue; a cached address proves nothing. */
async function seen(client: SQSClient, QueueUrl: string, abortSignal: AbortSignal): Promise<void> {
  await client.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }), { abortSignal });
}

const withSignal = (abortSignal: AbortSignal | undefined) => (abortSignal ? { abortSignal } : {});
