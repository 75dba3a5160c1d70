import { describe, expect, it } from 'vitest';
import { StreamClient } from '../../edge/stream-client.ts';
import { startListener } from '../../edge/stream-listener.ts';
import { eventually } from '../../fake/stream-agent.ts';

async function startClient(habits = {}) {
  const listener = await startListener(undefined, habits);
  const client = await StreamClient.connect();
  client.start(listener.name);
  await client.waitFor('ack');
  return { client, ...listener };
}

type Words = { readonly word: string }[];

describe('transcripts', () => {
  it('MUST 12: segments are consecutive and unique, also after repeats by an agent', async () => {
    const { client, agentStreams } = await startClient({ checkpoints: false });
    client.speak('one. two. thr');
    await client.waitFor('segment', ({ index }) => index === 1);
    agentStreams[0]?.cut();
    await client.waitFor('moved');
    client.speak('ee.').send({ type: 'end' });
    await client.end();
    const segments = client.all('segment');
    expect(segments.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(client.transcript).toBe('one|two|three');
    const times = segments.flatMap(({ start, end }) => [Number(start), Number(end)]);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(agentStreams).toHaveLength(2);
    // The second agent did repeat them.
    expect(agentStreams[1]?.events.filter(({ type }) => type === 'segment')).toHaveLength(3);
  });

  it('MUST 13: stable words stay when the next agent recognises others', async () => {
    const { client, agentStreams, agent, habits } = await startClient({ interims: true });
    client.speak('we meet ').speak('at noon ');
    await client.waitFor('interim', ({ stable }) => Number(stable) >= 3);
    habits.interims = false;
    agentStreams[0]?.cut();
    const agentStream = await eventually(() => agentStreams[1]);
    await client.waitFor('moved');
    const word = (text: string) => ({ word: text, start: 0, end: 1, confidence: 0.5 });
    const interim = (text: string, stable: number) => {
      const words = text.split(' ').map(word);
      agentStream.send({ type: 'interim', index: 0, start: 0, end: 1, text, words, stable, confidence: 0.5 });
    };
    interim('we', 1);
    interim('we eat at noon', 4);
    interim('we meet at noon or', 3);
    await client.waitFor('interim', ({ text }) => text === 'we meet at noon or');
    expect(client.all('interim').some(({ text }) => text === 'we' || text === 'we eat at noon')).toBe(false);
    const said = client.all('interim').map(({ words, stable }) => ({ words: words as Words, stable: Number(stable) }));
    for (const [at, { words, stable }] of said.entries()) {
      const promised = words.slice(0, stable).map((one) => one.word);
      for (const later of said.slice(at)) expect(later.words.slice(0, stable).map((one) => one.word)).toEqual(promised);
    }
    expect(agent.requests).toBe(2);
    client.close();
  });

  it('MUST 14: sends no interim of a finished segment', async () => {
    const { client, agentStreams } = await startClient();
    client.speak('done.');
    await client.waitFor('segment');
    const late = { start: 0, end: 1, text: 'late', words: [], stable: 0, confidence: 0.5 };
    agentStreams[0]?.send({ type: 'interim', ...late, index: 0 });
    agentStreams[0]?.send({ type: 'interim', ...late, index: 1 });
    expect(await client.waitFor('interim')).toMatchObject({ index: 1 });
    client.close();
  });

  it('MUST 15: ack follows earlier results and never goes back', async () => {
    const { client, agentStreams } = await startClient();
    client.speak('one. two. three. four');
    await client.waitFor('ack', ({ position }) => position === 16);
    agentStreams[0]?.cut();
    await client.waitFor('moved');
    client.speak('. five.').send({ type: 'end' });
    await client.end();
    const positions = client.all('ack').map(({ position }) => Number(position));
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
    expect(positions.at(-1)).toBe(28);
    const ends = [4, 9, 16, 22, 28];
    for (const [at, message] of client.messages.entries()) {
      if (message.type !== 'ack') continue;
      const before = client.messages.slice(0, at).filter(({ type }) => type === 'segment').length;
      expect(before).toBeGreaterThanOrEqual(ends.filter((end) => end <= Number(message.position)).length);
    }
  });
});
