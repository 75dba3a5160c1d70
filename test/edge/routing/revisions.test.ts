// Stable and canary of one name at one agent, seen by clients of every protocol and by the record.
import { beforeEach, describe, expect, it } from 'vitest';
import { deepgramListen } from '../../../edge/protocol/deepgram-listen.ts';
import { modelUuid } from '../../../edge/protocol/deepgram-model.ts';
import type { ModelRelease } from '../../../shared/registry/release.ts';
import { ask, startAgent, upload } from '../../fake/network.ts';
import { type AgentStream, eventually, habitsOf, listen } from '../../fake/stream-agent.ts';
import { makeToken } from '../authority.ts';
import { nextGeneration, publish, signRelease } from '../publish-release.ts';
import { StreamClient } from '../stream-client.ts';
import { forgetSession } from '../stream-listener.ts';

const [A, B] = ['b', 'c'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];
let generation = 0;
let model = '';
beforeEach(() => {
  generation = nextGeneration();
  model = `model-${crypto.randomUUID().slice(0, 8)}`;
});

/** Publishes the next map. */
async function release(one: ModelRelease): Promise<void> {
  const answered = await publish(await signRelease({ v: 1, generation, models: { [model]: one } }));
  expect(answered.status).toBe(200);
  generation += 1;
}

const newTenant = () => `t-${crypto.randomUUID().slice(0, 8)}`;

type Recorded = { type: string; revision?: string; agent?: string; why?: string };

/** Returns the events of a tenant once `ended` requests have ended. */
async function eventsOf(tenant: string, ended: number): Promise<Recorded[]> {
  const headers = { authorization: `Bearer ${await makeToken({ tenant: 'ops', scope: 'operate' })}` };
  const read = async () => {
    const answered = await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers });
    return ((await answered.json()) as { rows: { event: Recorded }[] }).rows.map(({ event }) => event);
  };
  const isEnd = ({ type }: Recorded) => type === 'inference.complete';
  await expect.poll(async () => (await read()).filter(isEnd).length).toBe(ended);
  return read();
}

const endsIn = (events: readonly Recorded[]) =>
  events.flatMap(({ type, revision }) => (type === 'inference.complete' ? [revision] : []));

describe('A16 C7 recordings at an agent with two revisions', () => {
  it('get either revision, by name and digest; the record names it', async () => {
    const agent = await startAgent(model, { revision: A, beside: [{ revision: B }] });
    await release({ stable: A, canary: { revision: B, share: 0.5 } });
    const tenant = newTenant();
    const token = await makeToken({ tenant });
    for (let time = 0; time < 24; time += 1) {
      expect((await upload({ token, fields: [['model', model]] })).status).toBe(200);
    }
    const served = agent.seen.map(({ ticket }) => ticket.revision);
    const onTrial = served.filter((revision) => revision === B).length;
    expect(onTrial).toBeGreaterThan(2);
    expect(served.filter((revision) => revision === A).length).toBe(24 - onTrial);
    const events = await eventsOf(tenant, 24);
    expect(endsIn(events).sort()).toEqual([...served].sort());
    const why = events.flatMap((event) => (event.type === 'route' ? [event.why] : []));
    expect(why.filter((one) => one === 'the only one of 1, canary').length).toBe(onTrial);
  });

  it('C10 Deepgram’s uuid follows the revision that answered', async () => {
    await startAgent(model, { revision: A, beside: [{ revision: B }] });
    const headers = { authorization: `Bearer ${await makeToken()}`, 'content-type': 'audio/wav' };
    for (const [stable, before] of [
      [A, B],
      [B, A],
    ] as const) {
      await release({ stable, before });
      const answered = await ask(`/v1/listen?model=${model}`, { method: 'POST', headers, body: new Uint8Array(64) });
      const { metadata } = (await answered.json()) as { metadata: { models: string[] } };
      expect(metadata.models).toEqual([modelUuid(model, stable)]);
    }
  });

  it('a revision that left the agent meanwhile is tried at another agent', async () => {
    const [one, two] = [await startAgent(model, { revision: A }), await startAgent(model, { revision: A })];
    await release({ stable: A });
    one.revision = B;
    for (let time = 0; time < 4; time += 1) {
      expect((await upload({ fields: [['model', model]] })).status).toBe(200);
    }
    expect(one.seen).toHaveLength(0);
    expect(two.seen).toHaveLength(4);
  });
});

describe('A16 R1 streams at agents with two revisions', () => {
  async function startPair() {
    const options = { live: true, revision: A, beside: [{ revision: B }] };
    const agents = [
      await startAgent(model, { ...options, pool: 'aks-one' }),
      await startAgent(model, { ...options, pool: 'aks-two' }),
    ];
    const streams: AgentStream[] = [];
    for (const agent of agents) listen(agent, habitsOf(), streams);
    const tenant = newTenant();
    const connect = () => StreamClient.connect(`?session=${model}`, { tenant });
    const client = await connect();
    return { tenant, client, connect, streams };
  }

  it('MUST 36: finish in the revision that they began with', async () => {
    const { tenant, client, streams } = await startPair();
    await release({ stable: B, before: A });
    client.start(model).speak('one. ');
    await eventually(() => streams[0]?.position === 5);
    await release({ stable: A, before: B });
    streams[0]?.cut();
    await client.waitFor('moved');
    expect(client.all('moved')[0]).not.toHaveProperty('revision');
    client.speak('two.').send({ type: 'end' });
    await client.end();
    expect(streams.map(({ revision }) => revision)).toEqual([B, B]);
    expect(client.transcript).toBe('one|two');
    expect(endsIn(await eventsOf(tenant, 1))).toEqual([B]);
  });

  it('C10 Deepgram’s uuid follows a stream to another revision', () => {
    const made = deepgramListen(new URL(`http://edge/v1/listen?model=${model}`));
    if (!made.ok) throw new Error(made.refusal.reason);
    const protocol = made.value;
    protocol.open({ id: 's', request: 'r', now: 0, expires: 1 });
    protocol.begin?.(0);
    protocol.render({ type: 'ready', agent: 'a', model, revision: A, language: 'en' }, 0);
    const uuidAfter = (revision?: string) => {
      protocol.render({ type: 'moved', agent: 'b', ...(revision !== undefined && { revision }) }, 0);
      const [frame] = protocol.render({ type: 'finalized', id: 1 }, 0);
      return (JSON.parse(String(frame)) as { metadata: { model_uuid: string } }).metadata.model_uuid;
    };
    expect([uuidAfter(), uuidAfter(B)]).toEqual([modelUuid(model, A), modelUuid(model, B)]);
  });

  it('MUST 33: keep the revision of their resume token', async () => {
    const { tenant, client, connect, streams } = await startPair();
    await release({ stable: B, before: A });
    client.start(model).speak('one. ');
    await client.waitFor('segment');
    await eventually(() => client.all('ack').length > 1);
    await release({ stable: A, before: B });
    await forgetSession(`${tenant}/${model}`);
    const again = await connect();
    again.start(model, { resume: client.resume, next: 1 });
    await again.waitFor('started');
    expect((await again.waitFor('ready')).revision).toBe(B);
    expect(streams.at(-1)?.revision).toBe(B);
    again.close();
  });

  it('MUST 36: move to the stable revision once their own is withdrawn', async () => {
    const { tenant, client, streams } = await startPair();
    await release({ stable: B, before: A });
    client.start(model).speak('one. ');
    await eventually(() => streams[0]?.position === 5);
    await release({ stable: A, before: A });
    streams[0]?.cut();
    expect(await client.waitFor('moved')).toMatchObject({ revision: A });
    client.speak('two.').send({ type: 'end' });
    await client.end();
    expect(streams.map(({ revision }) => revision)).toEqual([B, A]);
    expect(endsIn(await eventsOf(tenant, 1))).toEqual([A]);
  });
});
