import { describe, expect, it } from 'vitest';
import { eventually } from '../../fake/stream-agent.ts';
import { StreamClient } from '../stream-client.ts';
import { startListener } from '../stream-listener.ts';

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
