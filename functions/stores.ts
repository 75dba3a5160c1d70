// The real storage and queue clients behind the two narrow interfaces the functions need. What lies where, and for how
// long: STORAGE.md.
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  QueueDoesNotExist,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { BlobServiceClient } from '@azure/storage-blob';
import type { Settings } from './settings.ts';

/** Containers that the functions own. */
export const containers = ['uploads', 'outcomes'] as const;
export type ContainerName = (typeof containers)[number];

export interface Blobs {
  /** Makes the containers that are not there; does nothing to those that are. */
  ensure(signal: AbortSignal): Promise<void>;
}

export interface Jobs {
  /** Makes the queues that are not there; does nothing to those that are. */
  ensure(signal: AbortSignal): Promise<void>;
}

/** Tries of one call, the first included. Callers bring their own deadline. */
const TRIES = 3;
/** First pause between two tries, in milliseconds; the library's own default is four seconds. */
const PAUSE_MS = 200;
/** After this many receives a job goes to the dead queue. */
const RECEIVE_COUNT_MAX = 5;

export function openBlobs(settings: Settings): Blobs {
  const account = BlobServiceClient.fromConnectionString(settings.STORAGE_CONNECTION, {
    retryOptions: { maxTries: TRIES, retryDelayInMs: PAUSE_MS },
  });
  return {
    async ensure(signal) {
      await Promise.all(
        containers.map((name) => account.getContainerClient(name).createIfNotExists({ abortSignal: signal })),
      );
    },
  };
}

export function openJobs(settings: Settings): Jobs {
  // `endpoint` is passed as an option, never left to the environment: the client would then follow the host name inside
  // queue URLs, which no resolver knows.
  const client = new SQSClient({
    region: settings.SQS_REGION,
    maxAttempts: TRIES,
    ...(settings.SQS_ENDPOINT === undefined ? {} : { endpoint: settings.SQS_ENDPOINT }),
  });
  const find = async (name: string, abortSignal: AbortSignal): Promise<string | undefined> => {
    try {
      return (await client.send(new GetQueueUrlCommand({ QueueName: name }), { abortSignal })).QueueUrl;
    } catch (error) {
      if (error instanceof QueueDoesNotExist) return undefined;
      throw error;
    }
  };
  const create = async (name: string, attributes: Record<string, string>, abortSignal: AbortSignal) => {
    const command = new CreateQueueCommand({ QueueName: name, Attributes: attributes });
    return (await client.send(command, { abortSignal })).QueueUrl;
  };
  return {
    async ensure(signal) {
      if (await find(settings.JOBS_QUEUE, signal)) return;
      const deadQueue =
        (await find(settings.JOBS_DEAD_QUEUE, signal)) ?? (await create(settings.JOBS_DEAD_QUEUE, {}, signal));
      const read = new GetQueueAttributesCommand({ QueueUrl: deadQueue, AttributeNames: ['QueueArn'] });
      const { Attributes } = await client.send(read, { abortSignal: signal });
      const redrive = { deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount: RECEIVE_COUNT_MAX };
      await create(settings.JOBS_QUEUE, { RedrivePolicy: JSON.stringify(redrive) }, signal);
    },
  };
}
