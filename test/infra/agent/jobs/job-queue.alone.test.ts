import { CreateQueueCommand, GetQueueUrlCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type JobQueue, openSqs, QUEUE_MISSING_MS } from '../../../../infra/pool/agent/jobs/job-queue.ts';
import { jobQueue } from '../../../../shared/jobs/job.ts';

const REGION = 'us-east-1';
let server: Awaited<ReturnType<typeof startFauxqs>>;
let queue: JobQueue;
const forever = new AbortController().signal;

const openClient = () =>
  new SQSClient({ region: REGION, endpoint: `http://127.0.0.1:${server.port}`, useQueueUrlAsEndpoint: false });

async function send(body: string, name = 'jobs-eu') {
  const client = openClient();
  const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: name }));
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
  queue = openSqs({ queues: () => ['jobs-eu'], region: REGION, endpoint: `http://127.0.0.1:${server.port}` });
});
afterAll(async () => {
  queue.close();
  await server.stop();
});

describe('the queue of a zone, as SQS speaks (C2, C11)', () => {
  it('gives a job to one agent, and to none after its removal', async () => {
    await send('one');
    const [message] = await queue.receive(5, forever);
    expect(message).toMatchObject({ body: 'one', receives: 1 });
    await queue.keep(message?.receipt ?? '', 30);
    await queue.remove(message?.receipt ?? '');
  });

  it('redelivers a failed job, counts, and moves it aside after the last try', async () => {
    await send('poison');
    for (const receives of [1, 2, 3]) {
      const [message] = await queue.receive(1, forever);
      expect(message).toMatchObject({ body: 'poison', receives });
      await queue.keep(message?.receipt ?? '', 0);
    }
    const dead = openSqs({
      queues: () => ['jobs-eu-dlq'],
      region: REGION,
      endpoint: `http://127.0.0.1:${server.port}`,
    });
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
    let at = 0;
    const late = openSqs({
      queues: () => ['late'],
      region: REGION,
      endpoint: `http://127.0.0.1:${server.port}`,
      now: () => at,
    });
    expect(await late.receive(1, forever)).toEqual([]);
    const client = openClient();
    await client.send(new CreateQueueCommand({ QueueName: 'late' }));
    client.destroy();
    await send('first', 'late');
    expect(await late.receive(1, forever)).toEqual([]);
    at += QUEUE_MISSING_MS;
    expect(await late.receive(1, forever)).toMatchObject([{ body: 'first' }]);
    late.close();
  });

  it('a missing queue of another model does not lengthen the poll', { timeout: 15_000 }, async () => {
    const client = openClient();
    await client.send(new CreateQueueCommand({ QueueName: 'present' }));
    const queues = () => ['absent', 'present'];
    const endpoint = `http://127.0.0.1:${server.port}`;
    let at = 0;
    const agent = openSqs({ queues, region: REGION, endpoint, now: () => at });
    // The absent one is known to be missing from here on.
    expect(await agent.receive(1, forever)).toEqual([]);
    const polled = agent.receive(1, forever);
    await client.send(new CreateQueueCommand({ QueueName: 'absent' }));
    client.destroy();
    await send('first', 'absent');
    expect(await polled).toEqual([]);
    at += QUEUE_MISSING_MS;
    const messages = [...(await agent.receive(1, forever)), ...(await agent.receive(1, forever))];
    expect(messages).toMatchObject([{ body: 'first' }]);
    agent.close();
  });

  it('models take turns, and a busy one does not hide the others', async () => {
    const client = openClient();
    const names = ['a', 'b', 'c'].map((model) => jobQueue('turns', 'eu', model));
    for (const QueueName of names) await client.send(new CreateQueueCommand({ QueueName }));
    client.destroy();
    const [a, b] = names as [string, string, string];
    for (const body of ['a1', 'a2', 'a3']) await send(body, a);
    await send('b1', b);
    const both = openSqs({ queues: () => [a, b], region: REGION, endpoint: `http://127.0.0.1:${server.port}` });
    const bodies: string[] = [];
    for (let ask = 0; ask < 3; ask += 1) {
      const messages = await both.receive(1, forever);
      for (const { body, receipt } of messages) {
        bodies.push(body);
        await both.remove(receipt);
      }
    }
    expect(bodies).toEqual(['a1', 'b1', 'a2']);
    both.close();
  });

  it('an agent never receives a job for a model it does not serve', async () => {
    const client = openClient();
    const [own, other] = [jobQueue('models', 'eu', 'own'), jobQueue('models', 'eu', 'other')];
    for (const QueueName of [own, other]) await client.send(new CreateQueueCommand({ QueueName }));
    client.destroy();
    let served = [own];
    const agent = openSqs({ queues: () => served, region: REGION, endpoint: `http://127.0.0.1:${server.port}` });
    await send('for another', other);
    for (let time = 0; time < 7; time += 1) {
      await send('mine', own);
      const [message] = await agent.receive(1, forever);
      expect(message?.body).toBe('mine');
      await agent.remove(message?.receipt ?? '');
    }
    // The engine has loaded it meanwhile.
    served = [other];
    expect(await agent.receive(1, forever)).toMatchObject([{ body: 'for another', receives: 1 }]);
    agent.close();
  });
});
