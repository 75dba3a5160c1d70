import { describe, expect, it } from 'vitest';
import { EJECT_FAILURES } from '../../../edge/routing/memory.ts';
import { startAgent } from '../../fake/network.ts';
import { eventually, type Habits, habitsOf, listen } from '../../fake/stream-agent.ts';
import { StreamClient } from '../stream-client.ts';
import { modelName, startListener } from '../stream-listener.ts';

describe('R1 a live stream from a client to an agent', () => {
  it('says what was spoken, and how it ended', async () => {
    const { name, agentStreams } = await startListener();
    const client = await StreamClient.connect();
    client.start(name);
    const started = await client.waitFor('started');
    expect(started).toMatchObject({ v: 1, position: 0, time: 0 });
    client.speak('hello there.').speak('general ').speak('kenobi.').send({ type: 'end' });
    const { code } = await client.end();
    expect(client.transcript).toBe('hello there|general kenobi');
    expect(client.messages.at(-1)).toMatchObject({ type: 'final', segments: 2, durationSeconds: 27 / 8_000 });
    expect(code).toBe(1000);
    const [agentStream] = agentStreams;
    expect(agentStream?.ticket).toMatchObject({ tenant: 'acme', model: name, class: 'default' });
    expect(agentStream?.opened).toMatchObject({ v: 1, task: 'stream', model: name, options: { interim: true } });
    await eventually(() => agentStream?.closed);
  });
});

describe('C6 an agent that loses streams', () => {
  it('counts failures in a row from its last good stream', async () => {
    const name = modelName();
    const first = await startAgent(name, { live: true, accelerator: 'gpu' });
    const second = await startAgent(name, { live: true, pool: 'eks-test' });
    let isFailing = true;
    const before: Habits['before'] = (stream, message) => {
      if (!isFailing || ('type' in message && message.type === 'open')) return false;
      if ('text' in message) stream.cut();
      return true;
    };
    const [streams, moved] = [listen(first, habitsOf({ before })), listen(second)];
    const run = async (fails: boolean) => {
      isFailing = fails;
      const client = await StreamClient.connect();
      client.start(name).speak('hello.').send({ type: 'end' });
      expect((await client.end()).code).toBe(1000);
    };
    for (let count = 1; count < EJECT_FAILURES; count++) await run(true);
    await run(false);
    await run(true);
    await run(false);
    expect([streams.length, moved.length]).toEqual([EJECT_FAILURES + 2, EJECT_FAILURES]);
  });

  it('is not blamed for clients that leave before it is ready', async () => {
    const name = modelName();
    const first = await startAgent(name, { live: true, accelerator: 'gpu' });
    const second = await startAgent(name, { live: true, pool: 'eks-test' });
    const habits = habitsOf({ ready: false });
    const [streams, others] = [listen(first, habits), listen(second)];
    for (let count = 1; count <= EJECT_FAILURES; count++) {
      const client = await StreamClient.connect();
      client.start(name);
      await eventually(() => streams.length === count);
      client.close();
      await eventually(() => streams.at(-1)?.closed);
    }
    habits.ready = true;
    const client = await StreamClient.connect();
    client.start(name).speak('hello.').send({ type: 'end' });
    await client.end();
    expect([streams.length, others.length]).toEqual([EJECT_FAILURES + 1, 0]);
  });
});
