// `kill -9` of the local storage and queue servers during writes: every acknowledged write survives.
import { GetQueueAttributesCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBlobs } from '../../../functions/store/blobs.ts';
import { openTable } from '../../../functions/store/table-rows.ts';
import { storageConnection } from '../../../infra/local/plan.ts';
import { type Stack, startStack } from '../../../infra/local/stack.ts';
import { deadQueue } from '../../../shared/jobs/job.ts';
import { temporaryFolder } from '../../infra/local/folder.ts';

const WRITERS = 8;
const ACKNOWLEDGED = 40;
const PATIENCE = { timeout: 20_000, interval: 50 };
const folder = temporaryFolder();
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ port: 0, state: folder.path, parts: ['blob', 'sqs'] });
});
afterAll(async () => {
  await stack?.stop();
  folder.remove();
});

/**
 * Writes in parallel until `part` is killed after some acknowledgements. Returns the acknowledged numbers.
 */
async function writeAndKill(part: 'blob' | 'sqs', write: (n: number) => Promise<unknown>): Promise<Set<number>> {
  const kept = new Set<number>();
  const pid = stack.pid(part);
  let next = 0;
  let killed = false;
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (!killed) {
        const n = next++;
        const done = await write(n).then(
          () => true,
          () => false,
        );
        if (done) kept.add(n);
        if (kept.size < ACKNOWLEDGED || killed) continue;
        killed = true;
        stack.kill(part);
      }
    }),
  );
  // A writer that tries again may end when the part is back.
  await expect.poll(() => stack.pid(part) !== pid && stack.isReady(part), PATIENCE).toBe(true);
  return kept;
}

describe('C11: a killed emulator', () => {
  it('has every blob and row that it acknowledged', async () => {
    const connection = storageConnection(stack.ports as Record<string, number>);
    const [blobs, rows] = [openBlobs(connection), openTable(connection, 'loss')];
    const signal = AbortSignal.timeout(10_000);
    await Promise.all([blobs.ensure(signal), rows.ensure(signal)]);
    const key = (n: number) => String(n).padStart(6, '0');
    const kept = await writeAndKill('blob', async (n) => {
      await blobs.create('outcomes', `loss/${n}`, new TextEncoder().encode(`content of ${n}`));
      // Two rows in one transaction: both or neither.
      const pair = [`${key(n)}-a`, `${key(n)}-b`].map((one) => ({ type: 'insert', key: one, value: { n } }) as const);
      if (!(await rows.commit('p', pair))) throw new Error('a row is there twice');
    });
    const found = (await rows.scan('p', '', '~', 10_000)).map((row) => row.key);
    expect(new Set(found)).toEqual(new Set(found.flatMap((one) => [`${one.slice(0, 6)}-a`, `${one.slice(0, 6)}-b`])));
    for (const n of kept) {
      expect(found).toContain(`${key(n)}-b`);
      const blob = await blobs.find('outcomes', `loss/${n}`);
      const bytes = blob && (await blobs.start('outcomes', blob, 100));
      expect(new TextDecoder().decode(bytes)).toBe(`content of ${n}`);
    }
  });

  it('has every job message that it acknowledged', async () => {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const endpoint = `http://127.0.0.1:${stack.ports.sqs}`;
    const sqs = new SQSClient({ region: 'us-east-1', endpoint, credentials, maxAttempts: 1 });
    const QueueUrl = `${endpoint}/000000000000/${deadQueue('jobs', 'eu')}`;
    const kept = await writeAndKill('sqs', (n) => sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: `${n}` })));
    const name = 'ApproximateNumberOfMessages' as const;
    const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: [name] }));
    sqs.destroy();
    expect(Number(Attributes?.[name])).toBeGreaterThanOrEqual(kept.size);
  });
});
