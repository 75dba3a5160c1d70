// The job queues: one for each zone, and behind it one for jobs that nobody could finish.
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  QueueDoesNotExist,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { limits } from '../../shared/limits.ts';
import { deadQueue, jobQueue, lightQueue, type UploadJob } from '../../shared/upload/job.ts';

export interface DeadJob {
  readonly body: string;
  /** To delete it with. */
  readonly receipt: string;
}

export interface Depth {
  /** Jobs that nobody has taken, that are being worked on, and that nobody could finish. */
  readonly waiting: number;
  readonly taken: number;
  readonly dead: number;
}

export interface Jobs {
  /** Makes the queues that are not there; does nothing to those that are. */
  ensure(signal: AbortSignal): Promise<void>;
  /** Sends them to the queues of their zones. Returns those that were taken; throws when it is not known. */
  send(jobs: readonly UploadJob[]): Promise<UploadJob[]>;
  depth(zone: string): Promise<Depth>;
  /** Some of what nobody could finish; others do not see it for a minute. */
  takeDead(zone: string): Promise<DeadJob[]>;
  deleteDead(zone: string, job: DeadJob): Promise<void>;
}

export interface JobsPlace {
  readonly prefix: string;
  readonly region: string;
  readonly endpoint: string | undefined;
  readonly zones: readonly string[];
}

const TRIES = 3;
/** Messages of one call: what the service takes. */
const BATCH = 10;
const DEAD_INVISIBLE_S = 60;

export function openJobs({ prefix, region, endpoint, zones }: JobsPlace): Jobs {
  // `endpoint` is passed as an option, never left to the environment: the client would then follow the host name inside
  // queue URLs, which no resolver knows.
  const client = new SQSClient({ region, maxAttempts: TRIES, ...(endpoint !== undefined && { endpoint }) });
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
  const addressOf = async (name: string): Promise<string> => {
    const address = addresses.get(name) ?? (await find(name));
    if (address === undefined) throw new Error(`there is no queue ${name}`);
    return address;
  };
  const create = async (name: string, Attributes: Record<string, string>, signal: AbortSignal) =>
    (await client.send(new CreateQueueCommand({ QueueName: name, Attributes }), { abortSignal: signal })).QueueUrl;
  const ensureZone = async (zone: string, signal: AbortSignal): Promise<void> => {
    const names = [jobQueue(prefix, zone), lightQueue(prefix, zone)];
    const missing: string[] = [];
    for (const name of names) if (!(await find(name, signal))) missing.push(name);
    if (missing.length === 0) return;
    const dead = (await find(deadQueue(prefix, zone), signal)) ?? (await create(deadQueue(prefix, zone), {}, signal));
    const read = new GetQueueAttributesCommand({ QueueUrl: dead, AttributeNames: ['QueueArn'] });
    const { Attributes } = await client.send(read, { abortSignal: signal });
    const redrive = { deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount: limits.jobReceives.value };
    const attributes = {
      VisibilityTimeout: String(limits.jobVisibilitySeconds.value),
      RedrivePolicy: JSON.stringify(redrive),
    };
    for (const name of missing) await create(name, attributes, signal);
  };
  const count = async (
    name: string,
    attribute: 'ApproximateNumberOfMessages' | 'ApproximateNumberOfMessagesNotVisible',
  ) => {
    const AttributeNames = [attribute];
    const read = new GetQueueAttributesCommand({ QueueUrl: await addressOf(name), AttributeNames });
    return Number((await client.send(read)).Attributes?.[attribute] ?? 0);
  };
  return {
    async ensure(signal) {
      await Promise.all(zones.map((zone) => ensureZone(zone, signal)));
    },
    async send(jobs) {
      const taken: UploadJob[] = [];
      const queueOf = ({ zone, light }: UploadJob) => (light ? lightQueue : jobQueue)(prefix, zone);
      for (const [queue, ours] of Map.groupBy(jobs, queueOf)) {
        const QueueUrl = await addressOf(queue);
        for (let from = 0; from < ours.length; from += BATCH) {
          const some = ours.slice(from, from + BATCH);
          const Entries = some.map((job, index) => ({ Id: String(index), MessageBody: JSON.stringify(job) }));
          const { Successful = [] } = await client.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
          for (const { Id } of Successful) {
            const job = some[Number(Id)];
            if (job) taken.push(job);
          }
        }
      }
      return taken;
    },
    async depth(zone) {
      const both = (attribute: Parameters<typeof count>[1]) =>
        Promise.all([jobQueue, lightQueue].map((queue) => count(queue(prefix, zone), attribute)));
      const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one);
      const [waiting, taken, dead] = await Promise.all([
        both('ApproximateNumberOfMessages').then(sum),
        both('ApproximateNumberOfMessagesNotVisible').then(sum),
        count(deadQueue(prefix, zone), 'ApproximateNumberOfMessages'),
      ]);
      return { waiting, taken, dead };
    },
    async takeDead(zone) {
      const QueueUrl = await addressOf(deadQueue(prefix, zone));
      const receive = { QueueUrl, MaxNumberOfMessages: BATCH, VisibilityTimeout: DEAD_INVISIBLE_S };
      const { Messages = [] } = await client.send(new ReceiveMessageCommand(receive));
      return Messages.map(({ Body = '', ReceiptHandle = '' }) => ({ body: Body, receipt: ReceiptHandle }));
    },
    async deleteDead(zone, { receipt }) {
      const QueueUrl = await addressOf(deadQueue(prefix, zone));
      await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: receipt }));
    },
  };
}

const withSignal = (abortSignal: AbortSignal | undefined) => (abortSignal ? { abortSignal } : {});
