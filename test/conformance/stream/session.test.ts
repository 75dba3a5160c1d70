import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { LEASE_MS } from '../../../edge/ledger/allowance.ts';
import { Recorder } from '../../../edge/ledger/record.ts';
import { auricleStream } from '../../../edge/protocol/auricle-stream.ts';
import { liveProtocols } from '../../../edge/protocol/live-protocols.ts';
import { SNAPSHOT_AGE_MS } from '../../../edge/routing/snapshot.ts';
import { STREAM_RESUME_MS } from '../../../edge/stream/limits.ts';
import { type AuditEvent, auditEvent } from '../../../shared/audit/event.ts';
import { ok } from '../../../shared/result.ts';
import { makeToken } from '../../edge/authority.ts';
import { StreamClient } from '../../edge/stream-client.ts';
import { forgetSession, passQuietly, startListener } from '../../edge/stream-listener.ts';
import { ask, passTime } from '../../fake/network.ts';
import { type AgentStream, eventually } from '../../fake/stream-agent.ts';

const makeTenant = () => `t-${crypto.randomUUID().slice(0, 8)}`;

/** Returns a tenant's events, once `enough` of them are recorded. */
async function readRecord(tenant: string, enough: (events: AuditEvent[]) => boolean): Promise<AuditEvent[]> {
  const headers = { authorization: `Bearer ${await makeToken({ tenant: 'ops', scope: 'operate' })}` };
  for (;;) {
    const answer = await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers });
    const { rows } = (await answer.json()) as { rows: { event: unknown }[] };
    const events = rows.map(({ event }) => {
      const read = auditEvent.parse(event);
      // The schema has every member that was written.
      expect(read).toEqual(event);
      return read;
    });
    if (enough(events)) return events;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const isEnd = ({ type }: AuditEvent) => type === 'inference.complete' || type === 'inference.denied';
const ended = (count: number) => (events: AuditEvent[]) => events.filter(isEnd).length >= count;

async function startClient(claims: Record<string, unknown> = {}, habits = {}) {
  const tenant = makeTenant();
  const listener = await startListener(undefined, habits);
  const client = await StreamClient.connect('', { tenant, ...claims });
  client.start(listener.name);
  return { tenant, client, ...listener };
}

describe('A1 A2 R14 the record of a stream', () => {
  it('MUST 47: a strict tenant has attempt before ready, and end before final', async () => {
    const seen: { at: string; types: string[] }[] = [];
    const { tenant, client, agentStreams } = await startClient({ audit: 'strict' }, { ready: false, finals: false });
    const note = async (at: string) => {
      const events = await readRecord(tenant, () => true);
      seen.push({ at, types: events.map(({ type }) => type).filter((type) => type.startsWith('inference')) });
    };
    const agentStream = await eventually(() => agentStreams[0]?.opened && agentStreams[0]);
    await note('open');
    agentStream.ready('m');
    await client.waitFor('ready');
    client.speak('one.').send({ type: 'end' });
    await eventually(() => agentStream.messages.some((said) => !('kind' in said) && said.type === 'end'));
    agentStream.final();
    await client.waitFor('final');
    await note('final');
    expect(seen).toEqual([
      { at: 'open', types: ['inference.attempt'] },
      { at: 'final', types: ['inference.attempt', 'inference.complete'] },
    ]);
  });

  it('MUST 47: final waits for the record, also after a disconnect', async () => {
    const { tenant, client, agentStreams, name } = await startClient({ audit: 'strict' }, { finals: false });
    client.speak('one.').send({ type: 'end' });
    await eventually(() => agentStreams[0]?.messages.some((said) => !('kind' in said) && said.type === 'end'));
    await client.waitFor('ack', ({ position }) => position === 4);
    const session = String(client.all('started')[0]?.session);
    client.drop();
    await eventually(() => client.ended);
    const asked = Promise.withResolvers<boolean>();
    const record = vi.spyOn(Recorder.prototype, 'append').mockImplementation(() => asked.promise);
    onTestFinished(() => record.mockRestore());
    agentStreams[0]?.final();
    await eventually(() => record.mock.calls.some(([, step]) => step.kind === 'settle'));
    const again = await StreamClient.connect(`?session=${session}`, { tenant, audit: 'strict' });
    again.start(name, { resume: client.resume, next: 1 });
    await again.waitFor('started');
    expect(again.ended).toBeUndefined();
    asked.resolve(false);
    expect((await again.end()).code).toBe(4503);
    expect(again.all('final')).toEqual([]);
    expect(again.all('refusal')).toMatchObject([{ reason: 'audit_unavailable' }]);
  });

  it('MUST 70: records subject, agent, duration and outcome', async () => {
    const { tenant, client, agent, name } = await startClient();
    client.speak('_'.repeat(4_000)).send({ type: 'end' });
    await client.end();
    const events = await readRecord(tenant, ended(1));
    expect(events.map(({ type }) => type)).toEqual(['inference.attempt', 'keys', 'route', 'inference.complete']);
    expect(events[0]).toMatchObject({ action: 'stream', model: name, subject: expect.stringMatching(/^c1:/) });
    expect(events[2]).toMatchObject({ agent: agent.name, outcome: 'served', zone: 'eu' });
    expect(events[3]).toMatchObject({ status: 200, audioSeconds: 0.5, bytes: 4_000, agent: agent.name });
    // No word of the transcript is recorded.
    expect(JSON.stringify(events)).not.toContain('____');
  });

  it('notes that it went on elsewhere, and why', async () => {
    const { tenant, client, agentStreams, agent } = await startClient();
    client.speak('one. two');
    await eventually(() => agentStreams[0]?.position === 8);
    agentStreams[0]?.cut();
    await client.waitFor('moved');
    client.send({ type: 'end' });
    await client.end();
    const events = await readRecord(tenant, ended(1));
    expect(events.filter(({ type }) => type === 'stream.roll')).toMatchObject([
      { from: agent.name, to: agent.name, time: 4 / 8_000, reason: 'pool_lost' },
    ]);
    expect(events.filter(({ type }) => type === 'route')).toMatchObject([
      { attempt: 1, outcome: 'pool_lost' },
      { attempt: 2, outcome: 'served' },
    ]);
  });

  const ends: [string, string, number, (client: StreamClient, agentStream: AgentStream) => void][] = [
    ['a refusal', 'frame_invalid', 400, (client) => client.speak('x', 9_999)],
    ['a client that hangs up', 'client_gone', 499, (client) => client.close(1000)],
    ['a client that does not come back', 'client_gone', 499, (client) => client.drop()],
    [
      'an agent that refuses',
      'audio_invalid',
      400,
      (_, agentStream) => agentStream.send({ type: 'refusal', reason: 'audio_invalid' }),
    ],
  ];
  it.each(ends)('MUST 70: %s releases the lease and books the recognised audio', async (what, reason, status, act) => {
    const { tenant, client, agentStreams, name, agent } = await startClient({ allowance: { requestsAtOnce: 1 } });
    client.speak('_'.repeat(800));
    await eventually(() => agentStreams[0]?.position === 800);
    // The edge books what the agent has acknowledged: this event follows the acknowledgement on the same connection.
    agentStreams[0]?.send({ type: 'speech_started', at: 0 });
    await client.waitFor('speech_started');
    act(client, agentStreams[0] as AgentStream);
    await eventually(() => client.ended);
    if (what.includes('come back')) passTime(STREAM_RESUME_MS + 1_000);
    const events = await readRecord(tenant, ended(1));
    expect(events.filter(isEnd)).toMatchObject([{ type: 'inference.complete', reason, status, audioSeconds: 0.1 }]);
    // The roster has no report of the agent meanwhile.
    await agent.send(agent.report());
    await agent.settled();
    passTime(SNAPSHOT_AGE_MS);
    const next = await StreamClient.connect('', { tenant, allowance: { requestsAtOnce: 1 } });
    next.start(name);
    await next.waitFor('ready');
    next.close();
  });

  it.each(['lost', 'left'])('MUST 70: an edge that was %s is paid for, once', async (how) => {
    const { tenant, client, agentStreams, name } = await startClient({ allowance: { requestsAtOnce: 1 } });
    client.speak(`${'_'.repeat(3_999)}.`);
    await client.waitFor('ack', ({ position }) => position === 4_000);
    await eventually(() => agentStreams[0]?.position === 4_000);
    const session = String(client.all('started')[0]?.session);
    if (how === 'lost') await forgetSession(`${tenant}/${session}`);
    else client.close(1000);
    if (how === 'lost') {
      // The lost session still holds its lease: this one is not heard and not billed.
      const refused = await StreamClient.connect(`?session=${session}`, { tenant, allowance: { requestsAtOnce: 1 } });
      refused.start(name, { resume: client.resume, next: 0 });
      expect((await refused.end()).code).toBe(4429);
    } else await readRecord(tenant, ended(1));
    const again = await StreamClient.connect(`?session=${session}`, { tenant });
    again.start(name, { resume: client.resume, next: 0 });
    await again.waitFor('started');
    again.speak('_'.repeat(2_000), 4_000).send({ type: 'end' });
    expect((await again.end()).code).toBe(1000);
    const events = await readRecord(tenant, ended(2));
    const paid = events.flatMap((event) => (event.type === 'inference.complete' ? [event.audioSeconds] : []));
    expect(paid).toEqual(how === 'lost' ? [0.75] : [0.5, 0.25]);
  });

  it('MUST 70: audio replayed by an old token is billed each time', async () => {
    const { tenant, client, name } = await startClient();
    client.answers = false;
    const { resume: first } = (await client.waitFor('ack')) as unknown as { resume: string };
    const session = String(client.all('started')[0]?.session);
    client.speak(`${'_'.repeat(3_999)}.`);
    const { resume: settled } = (await client.waitFor('ack', ({ position }) => position === 4_000)) as unknown as {
      resume: string;
    };
    client.speak('_'.repeat(800)).send({ type: 'end' });
    await client.end();
    // The client has not answered the close: it may not have received the end.
    const again = async (resume: string, from: number, bytes: number) => {
      const one = await StreamClient.connect(`?session=${session}`, { tenant });
      one.answers = false;
      one.start(name, { resume, next: 0 });
      await one.waitFor('started');
      one.speak('_'.repeat(bytes), from).send({ type: 'end' });
      expect((await one.end()).code).toBe(1000);
    };
    await again(settled, 4_000, 800);
    await again(settled, 4_000, 800);
    await again(first, 0, 4_000);
    await again(first, 0, 4_000);
    const events = await readRecord(tenant, ended(5));
    const paid = events.flatMap((event) => (event.type === 'inference.complete' ? [event.audioSeconds] : []));
    expect(paid).toEqual([0.6, 0.1, 0.1, 0.5, 0.5].map((seconds) => expect.closeTo(seconds, 6)));
  });

  it('MUST 70: without quota no agent is called', async () => {
    const { tenant, client, name, agent } = await startClient({ allowance: { requestsAtOnce: 1 } });
    await client.waitFor('ready');
    const second = await StreamClient.connect('', { tenant, allowance: { requestsAtOnce: 1 } });
    second.start(name);
    expect((await second.end()).code).toBe(4429);
    expect(second.all('refusal')).toMatchObject([{ reason: 'allowance_concurrent' }]);
    expect(agent.requests).toBe(1);
    const events = await readRecord(tenant, ended(1));
    expect(events.filter(({ type }) => type === 'inference.denied')).toHaveLength(1);
    client.close();
  });

  it('a stream that lasts keeps its place', async () => {
    const { client, agentStreams, tenant } = await startClient({ audit: 'strict' });
    await client.waitFor('ready');
    const gate = env.GATE.getByName(`${tenant}/eu`);
    const until = () =>
      runInDurableObject(gate, (_, { storage }) => {
        const { state } = storage.sql.exec<{ state: string }>('SELECT state FROM allowance').one();
        const [lease] = Object.values((JSON.parse(state) as { leases: Record<string, { until: number }> }).leases);
        return lease?.until ?? 0;
      });
    for (let lease = 0; lease < 3; lease++) {
      const before = await until();
      await passQuietly(LEASE_MS / 2, agentStreams[0], client);
      await vi.waitUntil(async () => (await until()) > before, { timeout: 5_000, interval: 20 });
    }
    client.send({ type: 'end' });
    await client.end();
    const events = await readRecord(tenant, ended(1));
    expect(events.filter(isEnd)).toMatchObject([{ status: 200 }]);
  });
});

describe('bugs', () => {
  let logged = vi.spyOn(console, 'error');
  afterEach(() => {
    Object.assign(liveProtocols, { 'auricle-stream': { make: auricleStream } });
    logged.mockRestore();
  });

  it.each(['receive', 'render', 'close', 'open'] as const)(
    'MUST 71: a protocol adapter that throws in %s ends its session',
    async (where) => {
      logged = vi.spyOn(console, 'error').mockImplementation(() => {});
      const other = await startClient();
      await other.client.waitFor('ready');
      Object.assign(liveProtocols, {
        'auricle-stream': {
          make(url: URL, headers: Headers) {
            const made = auricleStream(url, headers);
            if (!made.ok) return made;
            const broken = () => {
              throw new Error('secret words');
            };
            return ok(Object.assign(made.value, { [where]: broken }));
          },
        },
      });
      const { client, agentStreams, tenant } = await startClient();
      if (where === 'close') client.send({ type: 'end' });
      expect((await client.end()).code).toBe(1011);
      if (where !== 'close') expect(client.all('refusal')).toMatchObject([{ reason: 'internal' }]);
      // The log contains only the error's name.
      expect(logged.mock.calls.length).toBeGreaterThan(0);
      expect(JSON.stringify(logged.mock.calls)).not.toContain('secret');
      await eventually(() => agentStreams.every(({ closed }) => closed));
      if (where === 'render') {
        const events = await readRecord(tenant, ended(1));
        expect(events.filter(isEnd)).toMatchObject([{ reason: 'internal', status: 500 }]);
      }
      other.client.speak('unharmed.').send({ type: 'end' });
      await other.client.end();
      expect(other.client.transcript).toBe('unharmed');
    },
  );
});
