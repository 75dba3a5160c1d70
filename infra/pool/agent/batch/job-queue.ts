import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { limits } from '../../../../shared/limits.ts';

/** A job as it was taken: only whoever holds `receipt` can say what becomes of it. */
export interface Message {
  readonly body: string;
  readonly receipt: string;
  /** How often it was taken, this time included. */
  readonly receives: number;
}

/** A queue of at-least-once delivery. All of it may reject, and then nothing is known. */
export interface JobQueue {
  /** At most `count` jobs, none after `limits.jobWaitSeconds`. */
  receive(count: number, signal: AbortSignal): Promise<readonly Message[]>;
  /** Nobody else gets it for `seconds` more; 0 gives it back at once. */
  keep(receipt: string, seconds: number): Promise<void>;
  remove(receipt: string): Promise<void>;
  close(): void;
}

export interface SqsOptions {
  readonly queue: string;
  readonly region: string;
  /** Left out in the cloud, where the region alone says it. */
  readonly endpoint?: string | undefined;
}

/** Most messages of one answer of SQS. */
const MOST = 10;

/** Credentials come from where the client library looks for them: the environment or the pod's identity. */
export function openSqs({ queue, region, endpoint }: SqsOptions): JobQueue {
  const client = new SQSClient({
    region,
    // The address in a queue's URL need not be one that is reachable from here.
    useQueueUrlAsEndpoint: false,
    ...(endpoint !== undefined && { endpoint }),
  });
  let address: Promise<string> | undefined;

  function find(): Promise<string> {
    address ??= client.send(new GetQueueUrlCommand({ QueueName: queue })).then(({ QueueUrl }) => {
      if (QueueUrl === undefined) throw new Error('the queue has no address');
      return QueueUrl;
    });
    // A queue that is not there yet is looked for again.
    address.catch(() => {
      address = undefined;
    });
    return address;
  }

  return {
    async receive(count, signal) {
      const command = new ReceiveMessageCommand({
        QueueUrl: await find(),
        MaxNumberOfMessages: Math.min(MOST, count),
        WaitTimeSeconds: limits.jobWaitSeconds.value,
        VisibilityTimeout: limits.jobVisibilitySeconds.value,
        MessageSystemAttributeNames: ['ApproximateReceiveCount'],
      });
      const { Messages = [] } = await client.send(command, { abortSignal: signal });
      return Messages.flatMap(({ Body: body = '', ReceiptHandle: receipt, Attributes }) =>
        receipt === undefined ? [] : [{ body, receipt, receives: Number(Attributes?.ApproximateReceiveCount ?? 1) }],
      );
    },
    async keep(receipt, seconds) {
      const command = { QueueUrl: await find(), ReceiptHandle: receipt, VisibilityTimeout: seconds };
      await client.send(new ChangeMessageVisibilityCommand(command));
    },
    async remove(receipt) {
      await client.send(new DeleteMessageCommand({ QueueUrl: await find(), ReceiptHandle: receipt }));
    },
    close: () => client.destroy(),
  };
}
