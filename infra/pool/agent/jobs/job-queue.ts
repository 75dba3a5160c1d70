import { setTimeout as sleep } from 'node:timers/promises';
import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  GetQueueUrlCommand,
  QueueDoesNotExist,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { JOB_VISIBILITY_S } from '../../../../shared/jobs/limits.ts';

/** Long poll for jobs: the longest that SQS takes, so that idle agents cost least. */
const JOB_WAIT_S = 20;
/**
 * Long poll of an agent with several models, which polls each queue in turn; costs about a dollar a month.
 */
const JOB_TURN_S = 1;
/** Longest delay until agents find the queue of a model, which its first job creates. */
export const QUEUE_MISSING_MS = 3_000;

/** A received job. Only the holder of `receipt` can extend, return or delete it. */
export interface Message {
  readonly body: string;
  readonly receipt: string;
  /** How often it was taken, this time included. */
  readonly receives: number;
}

/** Queues of at-least-once delivery. All of it may reject, and then nothing is known. */
export interface JobQueue {
  /** At most `count` jobs of one of the queues; none after `JOB_WAIT_S`, sooner when there are several. */
  receive(count: number, signal: AbortSignal): Promise<readonly Message[]>;
  /** Hides the job from other agents for `seconds` more; 0 returns it at once. */
  keep(receipt: string, seconds: number): Promise<void>;
  remove(receipt: string): Promise<void>;
  close(): void;
}

export interface SqsOptions {
  /** Names of the queues that are asked, in turn; may change. */
  readonly queues: () => readonly string[];
  readonly region: string;
  /** Left out in the cloud, where the region alone says it. */
  readonly endpoint?: string | undefined;
  readonly now?: () => number;
}

/** Most messages of one answer of SQS. */
const MOST = 10;

/** Credentials come from where the client library looks for them: the environment or the pod's identity. */
export function openSqs({ queues, region, endpoint, now = Date.now }: SqsOptions): JobQueue {
  const client = new SQSClient({
    region,
    // The address in a queue's URL need not be one that is reachable from here.
    useQueueUrlAsEndpoint: false,
    ...(endpoint !== undefined && { endpoint }),
  });
  const addresses = new Map<string, string>();
  /**
   * Time until which a missing queue is not looked up again, by name: a queue is created with the first job
   * of its model.
   */
  const missing = new Map<string, number>();
  let turn = 0;

  async function find(name: string, abortSignal: AbortSignal): Promise<string | undefined> {
    const known = addresses.get(name);
    if (known !== undefined) return known;
    try {
      const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: name }), { abortSignal });
      if (QueueUrl !== undefined) addresses.set(name, QueueUrl);
      return QueueUrl;
    } catch (error) {
      if (!(error instanceof QueueDoesNotExist)) throw error;
      missing.set(name, now() + QUEUE_MISSING_MS);
      return undefined;
    }
  }

  /** Returns the next queue in turn that is there; `of` counts missing ones, too: a first job may create one now. */
  async function next(signal: AbortSignal): Promise<{ address: string; name: string; of: number } | undefined> {
    const all = queues();
    const names = all.filter((name) => (missing.get(name) ?? 0) <= now());
    for (const _ of names) {
      const name = names[turn++ % names.length] as string;
      const address = await find(name, signal);
      if (address !== undefined) return { address, name, of: all.length };
    }
    return undefined;
  }

  return {
    async receive(count, signal) {
      const queue = await next(signal);
      if (!queue) {
        await sleep(QUEUE_MISSING_MS / 10, undefined, { signal });
        return [];
      }
      const command = new ReceiveMessageCommand({
        QueueUrl: queue.address,
        MaxNumberOfMessages: Math.min(MOST, count),
        WaitTimeSeconds: queue.of > 1 ? JOB_TURN_S : JOB_WAIT_S,
        VisibilityTimeout: JOB_VISIBILITY_S,
        MessageSystemAttributeNames: ['ApproximateReceiveCount'],
      });
      const answer = client.send(command, { abortSignal: signal });
      answer.catch((error) => error instanceof QueueDoesNotExist && addresses.delete(queue.name));
      const { Messages = [] } = await answer;
      return Messages.flatMap(({ Body: body = '', ReceiptHandle, Attributes }) => {
        const receives = Number(Attributes?.ApproximateReceiveCount ?? 1);
        return ReceiptHandle === undefined ? [] : [{ body, receipt: `${queue.address} ${ReceiptHandle}`, receives }];
      });
    },
    async keep(receipt, seconds) {
      await client.send(new ChangeMessageVisibilityCommand({ ...placeOf(receipt), VisibilityTimeout: seconds }));
    },
    async remove(receipt) {
      await client.send(new DeleteMessageCommand(placeOf(receipt)));
    },
    close: () => client.destroy(),
  };
}

/** A receipt counts in its queue only. */
function placeOf(receipt: string): { QueueUrl: string; ReceiptHandle: string } {
  const space = receipt.indexOf(' ');
  return { QueueUrl: receipt.slice(0, space), ReceiptHandle: receipt.slice(space + 1) };
}
