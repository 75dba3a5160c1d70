import { describe, expect, it } from 'vitest';
import { ROSTER_GATHER_MS } from '../../../edge/routing/have-reconnected.ts';
import { SNAPSHOT_AGE_MS } from '../../../edge/routing/snapshot.ts';
import { STREAM_FIND_MS } from '../../../edge/stream/upstream.ts';
import { ask, passTime, startAgent } from '../../fake/network.ts';
import { type AgentStream, eventually, habitsOf, listen } from '../../fake/stream-agent.ts';
import { makeToken } from '../authority.ts';
import { LiveClient } from '../live-client.ts';
import { StreamClient } from '../stream-client.ts';
import { forgetSession } from '../stream-listener.ts';

/** Runs once an agent has heard the first word; returns true to ignore the word. */
type Spoken = (stream: AgentStream) => unknown;

/** Acts of an agent that detects. */
function detecting(spoken: Spoken): Partial<ReturnType<typeof habitsOf>> {
  return {
    ready: false,
    before(stream, message) {
      if (!('type' in message)) {
        if (stream.opened?.detect && message.text.trim() !== '' && !isDetected(stream)) return spoken(stream) === true;
      } else if (message.type === 'open') {
        const { model, detect, language } = message;
        const spokenIn = detect ? 'auto' : (language ?? 'en');
        stream.send({ type: 'ready', agent: stream.agent, model, revision: stream.revision, language: spokenIn });
      }
      return undefined;
    },
  };
}
const isDetected = ({ events }: AgentStream) => events.some(({ type }) => type === 'language' || type === 'refusal');
const english = (stream: AgentStream) => stream.send({ type: 'language', language: 'en', confidence: 0.98 });
const misdirect = (stream: AgentStream, language = 'es') =>
  stream.send({ type: 'refusal', reason: 'misdirected', params: { language, confidence: 0.97 } });

async function startFamily(spoken: Spoken) {
  const family = `family-${crypto.randomUUID().slice(0, 8)}`;
  const member = (language: string) => ({ name: `${family}-${language}`, family, languages: [language] });
  const detector = { name: `${family}-id`, task: 'infer' as const, detects: true as const, languages: ['en', 'es'] };
  const first = await startAgent(`${family}-a`, { live: true, beside: [member('en'), detector] });
  const second = await startAgent(`${family}-b`, { live: true, pool: 'eks-test', beside: [member('es')] });
  const streams = listen(first, habitsOf(detecting(spoken)));
  const moved = listen(second);
  return { family, member, detector, first, second, streams, moved };
}

describe('C6 a live stream for a family', () => {
  it('goes to the member of its language', async () => {
    const { family, streams, moved } = await startFamily(misdirect);
    const client = await StreamClient.connect();
    client.start(family, { language: 'es' }).speak('hola.').send({ type: 'end' });
    expect((await client.end()).code).toBe(1000);
    expect([streams.length, moved[0]?.opened]).toMatchObject([0, { model: `${family}-es`, language: 'es' }]);
    expect(client.all('language')).toEqual([]);
  });

  it('MUST 54: moves with its audio to the member of the detected language', async () => {
    const { family, streams, moved } = await startFamily(misdirect);
    const client = await StreamClient.connect();
    client.start(family).speak(' '.repeat(3_000)).speak('hola mundo. a').speak('dios.').send({ type: 'end' });
    expect((await client.end()).code).toBe(1000);
    expect(client.transcript).toBe('hola mundo|adios');
    const language = { type: 'language', language: 'es', confidence: 0.97, model: `${family}-es` };
    expect(client.all('language')).toEqual([language]);
    expect(client.all('ready')).toMatchObject([{ model: `${family}-en`, language: 'auto' }]);
    expect(streams[0]?.opened).toMatchObject({ model: `${family}-en`, detect: true });
    expect(moved[0]?.opened).toMatchObject({ model: `${family}-es`, language: 'es' });
    expect(moved[0]?.opened).not.toHaveProperty('detect');
    expect(moved[0]?.ticket).toMatchObject({ model: `${family}-es` });
  });

  it('MUST 54: waits for the only agent of the detected language', async () => {
    // Rosters that have run for long enough know that every agent of the member is away.
    await ask('/v1/models', { headers: { authorization: `Bearer ${await makeToken()}` } });
    passTime(ROSTER_GATHER_MS);
    const { family, second, moved } = await startFamily(misdirect);
    await second.send(second.report({ engineReady: false }));
    await second.settled();
    passTime(SNAPSHOT_AGE_MS);
    const client = await StreamClient.connect();
    client.start(family).speak('hola mundo. a');
    await client.waitFor('language');
    passTime(2 * STREAM_FIND_MS);
    client.speak('dios.').send({ type: 'end' });
    await second.send(second.report());
    await second.settled();
    passTime(SNAPSHOT_AGE_MS);
    expect((await client.end()).code).toBe(1000);
    expect(client.transcript).toBe('hola mundo|adios');
    expect(moved[0]?.opened).toMatchObject({ model: `${family}-es`, language: 'es' });
  });

  it('MUST 54: is refused at once in a language without a member', async () => {
    const { family } = await startFamily((stream) => misdirect(stream, 'de'));
    const client = await StreamClient.connect();
    client.start(family).speak('hallo.');
    expect((await client.end()).code).toBe(4400);
    expect(client.all('refusal')).toMatchObject([{ reason: 'language_unknown' }]);
  });

  it('R3 is detected among the listed languages, which a resumed session keeps', async () => {
    const { family, streams } = await startFamily((stream) => {
      if (streams.length > 1) return english(stream);
      stream.cut();
      return true;
    });
    const query = `model=${family}&encoding=linear16&sample_rate=16000&detect_language=en&detect_language=es`;
    const client = await LiveClient.connect(`/v1/listen?${query}`, {
      authorization: `Bearer ${await makeToken()}`,
    });
    client.send(new TextEncoder().encode('hello.'));
    await eventually(() => streams[1]?.opened);
    expect(streams.map(({ opened }) => opened?.languages)).toEqual([
      ['en', 'es'],
      ['en', 'es'],
    ]);
    client.send({ type: 'CloseStream' });
    await client.end();
  });

  it('MUST 73: stays at an agent that serves the detected language', async () => {
    const { family, streams, moved } = await startFamily(english);
    const client = await StreamClient.connect();
    client.start(family).speak('hello there.').send({ type: 'end' });
    await client.end();
    expect(client.receivedBefore('language')).toEqual([]);
    expect(client.all('language')).toMatchObject([{ language: 'en', confidence: 0.98, model: `${family}-en` }]);
    expect([client.transcript, streams.length, moved.length]).toEqual(['hello there', 1, 0]);
  });

  it('goes on in its language when the agent dies after the detection', async () => {
    const { family, streams } = await startFamily(english);
    const client = await StreamClient.connect();
    client.start(family).speak('hel');
    await client.waitFor('language');
    streams[0]?.cut();
    await eventually(() => streams.length > 1);
    client.speak('lo.').send({ type: 'end' });
    await client.end();
    expect([client.transcript, client.all('language').length]).toEqual(['hello', 1]);
    expect(streams[1]?.opened).toMatchObject({ model: `${family}-en`, language: 'en' });
    expect(streams[1]?.opened).not.toHaveProperty('detect');
  });

  it('is detected again when the agent dies before it knows', async () => {
    const { family, streams, moved } = await startFamily((stream) => {
      if (streams.length > 1) return misdirect(stream);
      stream.cut();
      return true;
    });
    const client = await StreamClient.connect();
    client.start(family).speak('hola.');
    await eventually(() => streams.length > 1);
    client.send({ type: 'end' });
    await client.end();
    expect([client.transcript, streams.length, moved.length]).toEqual(['hola', 2, 1]);
  });

  it('resumes in the detected language', async () => {
    const { family, moved } = await startFamily(misdirect);
    const client = await StreamClient.connect();
    client.start(family).speak('hola.');
    await client.waitFor('segment');
    await client.waitFor('ack', ({ position }) => position === 5);
    const { session } = await client.waitFor('started');
    await forgetSession(`acme/${session}`);
    const again = await StreamClient.connect(`?session=${session}`);
    again.position = 5;
    again.start(family, { resume: client.resume, next: 1 });
    await again.waitFor('started');
    again.speak('adios.').send({ type: 'end' });
    await again.end();
    expect(again.transcript).toBe('adios');
    expect(moved.at(-1)?.opened).toMatchObject({ model: `${family}-es`, language: 'es' });
  });

  it('is refused in a language that the token forbids', async () => {
    const { family, member } = await startFamily(misdirect);
    await startAgent(`${family}-c`, { live: true, beside: [{ ...member('fr') }] });
    const client = await StreamClient.connect('', { languages: ['en', 'fr'] });
    client.start(family).speak('hola.');
    expect(await client.end()).toMatchObject({ code: 4403 });
    expect(client.all('refusal')).toMatchObject([{ reason: 'language_forbidden' }]);
  });

  it('reads the likeliest languages when none is certain', async () => {
    const params = { first: 'en', firstConfidence: 0.5, second: 'es', secondConfidence: 0.4 };
    const { family } = await startFamily((stream) => {
      stream.send({ type: 'refusal', reason: 'language_uncertain', params });
    });
    const client = await StreamClient.connect();
    client.start(family).speak('hm.');
    expect((await client.end()).code).toBe(4400);
    expect(client.all('refusal')).toMatchObject([{ message: expect.stringContaining('"en" (0.5) or "es" (0.4)') }]);
  });
});
