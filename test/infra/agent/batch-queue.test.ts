import { startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type JobQueue, openSqs } from '../../../infra/pool/agent/batch/job-queue.ts';

const REGION = 'us-east-1';
let server: Awaited<ReturnType<typeof startFauxqs>>;
let queue: JobQueue;
const forever = new AbortController().signal;

async function send(body: string) {
  const { SQSClient, SendMessageCommand, GetQueueUrlCommand } = await import('@aws-sdk/client-sqs');
  const client = new SQSClient({
    region: REGION,
    endpoint: `http://127.0.0.1:${server.port}`,
    useQueueUrlAsEndpoint: false,
  });
  const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: 'jobs-eu' }));
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: body }));
  client.destroy();
}

beforeAll(async () => {
  // The server checks no signature, but the client library signs with something.
  process.env.AWS_ACCESS_KEY_ID = 'local';
  process.env.AWS_SECRET_ACCESS_KEY = 'local';
  server = await startFauxqs({
    port: 0,
    logger: false,
    defaultRegion: REGION,
    init: {
      queues: [
        { name: 'jobs-eu-dlq' },
        {
          name: 'jobs-eu',
          attributes: {
            RedrivePolicy: JSON.stringify({
              deadLetterTargetArn: `arn:aws:sqs:${REGION}:000000000000:jobs-eu-dlq`,
              maxReceiveCount: '3',
            }),
          },
        },
      ],
    },
  });
  queue = openSqs({ queue: 'jobs-eu', region: REGION, endpoint: `http://127.0.0.1:${server.port}` });
});
afterAll(async () => {
  queue.close();
  await server.stop();
});

describe('the queue of a zone, as SQS speaks (C2, C11)', () => {
  it('gives a job to one agent, and to nobody once it is removed', async () => {
    await send('one');
    const [message] = await queue.receive(5, forever);
    expect(message).toMatchObject({ body: 'one', receives: 1 });
    await queue.keep(message?.receipt ?? '', 30);
    await queue.remove(message?.receipt ?? '');
  });

  it('gives one that failed again, counts, and puts it aside after its last try', async () => {
    await send('poison');
    for (const receives of [1, 2, 3]) {
      const [message] = await queue.receive(1, forever);
      expect(message).toMatchObject({ body: 'poison', receives });
      await queue.keep(message?.receipt ?? '', 0);
    }
    const dead = openSqs({ queue: 'jobs-eu-dlq', region: REGION, endpoint: `http://127.0.0.1:${server.port}` });
    await send('next');
    expect(await queue.receive(1, forever)).toMatchObject([{ body: 'next' }]);
    expect(await dead.receive(1, forever)).toMatchObject([{ body: 'poison' }]);
    dead.close();
  });

  it('a long question ends with the order to stop', async () => {
    const stop = new AbortController();
    const asked = queue.receive(1, stop.signal);
    setImmediate(() => stop.abort());
    await expect(asked).rejects.toThrow();
  });

  it('a queue that is not there yet is looked for again', async () => {
    const late = openSqs({ queue: 'late', region: REGION, endpoint: `http://127.0.0.1:${server.port}` });
    await expect(late.receive(1, forever)).rejects.toThrow();
    const { SQSClient, CreateQueueCommand } = await import('@aws-sdk/client-sqs');
    const client = new SQSClient({ region: REGION, endpoint: `http://127.0.0.1:${server.port}` });
    await client.send(new CreateQueueCommand({ QueueName: 'late' }));
    client.destroy();
    const stop = AbortSignal.timeout(50);
    await expect(late.receive(1, stop)).rejects.toMatchObject({ name: expect.stringMatching(/Abort|Timeout/) });
    late.close();
  });
});
