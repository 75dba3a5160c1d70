import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { decodeJwt } from 'jose';
import { afterEach, describe, expect, it } from 'vitest';
import { createEvent } from '../../../edge/ledger/create-event.ts';
import { healthOf } from '../../../edge/routing/agent-health.ts';
import { type LastMessage, ROSTER_BOOTS_MAX, readHello } from '../../../edge/routing/agent-link.ts';
import { AgentNames, mayUseName, ROSTER_NAME_MS, ROSTER_NAMES_MAX } from '../../../edge/routing/agent-names.ts';
import { ROSTER_GONE_MS } from '../../../edge/routing/known-agents.ts';
import type { Roster } from '../../../edge/routing/roster.ts';
import { ROSTER_HELLO_MS, ROSTER_STRANGERS_MAX } from '../../../edge/routing/roster.ts';
import type { AuditEvent } from '../../../shared/audit/event.ts';
import type { AgentMessage } from '../../../shared/pool/heartbeat.ts';
import { HEARTBEAT_GONE_MS, HEARTBEAT_MS } from '../../../shared/pool/limits.ts';
import { HEARTBEAT_BYTES } from '../../../shared/registry/live-report.ts';
import { verifyAttestation } from '../../../shared/seal/attestation.ts';
import { FakeAgent, type Options } from '../../fake/agent.ts';
import { passTime } from '../../fake/network.ts';
import { makeSettings, productionTexts } from '../../fake/settings.ts';
import { makePoolToken } from '../authority.ts';

const joined: FakeAgent[] = [];
const make = async (options?: Options) => {
  const agent = await FakeAgent.make(options);
  joined.push(agent);
  return agent;
};
afterEach(() => {
  for (const agent of joined.splice(0)) agent.leave();
});

const listed = async (zone = 'eu') =>
  (await env.ROSTER.getByName(zone).snapshot()).entries
    .filter((entry) => healthOf(entry, Date.now()) !== 'gone')
    .map(({ description }) => description.agent);
const gone = async () => {
  const { at, entries } = await env.ROSTER.getByName('eu').snapshot();
  return entries.filter((entry) => healthOf(entry, at) === 'gone').map(({ description }) => description.agent);
};

describe('C5 A4 the roster lists attested live agents', () => {
  it('an agent after hello and its first report', async () => {
    const agent = await make();
    await agent.connect();
    await agent.send(agent.hello());
    expect(await agent.waitFor(({ type }) => type === 'welcome')).toEqual({
      type: 'welcome',
      intervalMs: HEARTBEAT_MS,
    });
    expect(await listed()).not.toContain(agent.name);
    await agent.send(agent.report());
    await agent.settled();
    expect(await listed()).toContain(agent.name);
    expect(await listed('us')).not.toContain(agent.name);
  });

  it('not a silent agent', async () => {
    const agent = await make();
    await agent.join();
    passTime(HEARTBEAT_GONE_MS + 1);
    expect(await listed()).not.toContain(agent.name);
    await agent.send(agent.report());
    await agent.settled();
    expect(await listed()).toContain(agent.name);
  });

  it('not an agent that left, which is recorded', async () => {
    const agent = await make();
    await agent.join();
    const before = (await env.ROSTER.getByName('eu').outbox(0, 500)).rows.at(-1)?.pseq ?? 0;
    agent.leave();
    await agent.closed;
    expect(await listed()).not.toContain(agent.name);
    const { rows } = await env.ROSTER.getByName('eu').outbox(before, 500);
    expect(rows).toMatchObject([{ event: { type: 'keys', action: 'gone', agent: agent.name } }]);
  });

  it('the newer of two connections of one agent', async () => {
    const agent = await make();
    await agent.join();
    const first = agent.closed;
    await agent.connect();
    await agent.send(agent.hello());
    await agent.send(agent.report());
    await agent.settled();
    expect(await first).toMatchObject({ code: 1000 });
    expect((await listed()).filter((name) => name === agent.name)).toHaveLength(1);
  });

  it('C7, T1: and sends each the release map at once, again when a report lacks it', async () => {
    const [agent, old] = [await make(), await make()];
    for (const one of [agent, old]) await one.join();
    const generation = 1_000 + Math.floor(performance.now());
    await agent.send({ ...agent.report(), release: 0 } as AgentMessage);
    await agent.settled();
    const map = { v: 1 as const, generation, models: {} };
    expect(await env.ROSTER.getByName('eu').release(map, `signed ${generation}`)).toBe(generation);
    const told = (number: number) => (message: Record<string, unknown>) =>
      message.type === 'release' && message.release === `signed ${number}`;
    await agent.waitFor(told(generation));
    const count = () => agent.messages.filter(told(generation)).length;
    const before = count();
    await agent.send({ ...agent.report(), release: generation - 1 } as AgentMessage);
    await expect.poll(count).toBe(before + 1);
    await agent.send({ ...agent.report(), release: generation } as AgentMessage);
    await agent.settled();
    expect(count()).toBe(before + 1);
    // An older map changes nothing, and an agent that knows of none is told none.
    expect(await env.ROSTER.getByName('eu').release({ ...map, generation: 1 }, 'signed 1')).toBe(generation);
    await old.settled();
    expect(old.messages.filter(({ type }) => type === 'release')).toEqual([]);
    const { entries } = await env.ROSTER.getByName('eu').snapshot();
    expect(entries.find(({ description }) => description.agent === agent.name)?.release).toBe(generation);
  });

  it('and stores audit events of agents under the sender’s name, acknowledged', async () => {
    const agent = await make();
    await agent.join();
    const loaded = { type: 'model.revision', agent: agent.name, action: 'loaded', model: 'm', revision: 'r' } as const;
    const event = {
      ...createEvent(loaded, Date.now()),
      producer: 'somebody else',
      transcript: 'words that must not be kept',
    };
    agent.seq += 1;
    const { seq, boot } = agent;
    await agent.send({ v: 1, type: 'audit', boot, seq, events: [event, { nonsense: true }] });
    await agent.waitFor((message) => message.type === 'ack' && message.seq === seq);
    const { rows } = await env.ROSTER.getByName('eu').outbox(0, 500);
    expect(rows.at(-1)?.event).toMatchObject({ type: 'gap', lost: 1, producer: agent.name });
    const kept = rows.map((row) => row.event as Record<string, unknown>).find(({ id }) => id === event.id);
    expect(kept).toMatchObject({ type: 'model.revision', producer: agent.name });
    expect(kept).not.toHaveProperty('transcript');
  });
});

describe('C5 C6 the roster lists recently left agents', () => {
  it('so that a model is unavailable rather than unknown, until forgotten', async () => {
    const agent = await make();
    await agent.join();
    agent.leave();
    await agent.closed;
    expect(await gone()).toContain(agent.name);
    passTime(ROSTER_GONE_MS - 1_000);
    expect(await gone()).toContain(agent.name);
    passTime(1_001);
    expect(await gone()).not.toContain(agent.name);
  });

  it('only until its return', async () => {
    const agent = await make();
    await agent.join();
    agent.leave();
    await agent.closed;
    await agent.connect();
    await agent.send(agent.hello());
    await agent.send(agent.report());
    await agent.settled();
    expect(await gone()).not.toContain(agent.name);
    expect(await listed()).toContain(agent.name);
  });
});

describe('C5 sockets that do not say hello', () => {
  it('are closed after a while', async () => {
    const [silent, talking] = [await make(), await make()];
    await silent.connect();
    await talking.join();
    passTime(ROSTER_HELLO_MS + 1);
    await env.ROSTER.getByName('eu').snapshot();
    expect(await silent.closed).toMatchObject({ code: 4403 });
    await talking.send(talking.report());
    await talking.settled();
  });

  it('are bounded, and room comes back', async () => {
    const agents = await Promise.all(Array.from({ length: ROSTER_STRANGERS_MAX }, () => make({ zone: 'us' })));
    for (const agent of agents) expect((await agent.connect()).status).toBe(101);
    const late = await make({ zone: 'us' });
    expect((await late.connect()).status).toBe(503);
    passTime(ROSTER_HELLO_MS + 1);
    expect((await late.connect()).status).toBe(101);
  });
});

/** Events of type `keys` about an agent, and refusals of its pool, after `pseq`. */
const recorded = async (after: number) =>
  (await env.ROSTER.getByName('eu').outbox(after, 500)).rows.map(({ event }) => event as Record<string, unknown>);
const lastNumber = async () => (await env.ROSTER.getByName('eu').outbox(0, 500)).rows.at(-1)?.pseq ?? 0;

describe('C5 A4 an agent with a wrong clock', () => {
  const refusedFor = async (agent: FakeAgent) =>
    (await env.ROSTER.getByName('eu').refused()).find(({ pool }) => pool === agent.pool)?.why;

  it.each([
    [600_000, '600 s ahead'],
    [-600_000, '600 s behind'],
  ])('is refused by its clock with the hello, %i ms off', async (offset, said) => {
    const agent = await make({ pool: `clock-${crypto.randomUUID()}` });
    const before = await lastNumber();
    await agent.connect();
    await agent.send({ ...agent.hello(), at: Date.now() + offset } as AgentMessage);
    expect(await agent.closed).toMatchObject({ code: 4403 });
    const rule = `the agent's clock is ${said}`;
    const detail = `The roster does not accept this report. Reason: ${rule}.`;
    const refusal = await agent.waitFor(({ type }) => type === 'refusal');
    expect(refusal).toMatchObject({ reason: 'heartbeat_invalid', detail });
    expect(await recorded(before)).toMatchObject([{ type: 'keys', action: 'refused', detail: rule }]);
    expect(await refusedFor(agent)).toBe(detail);
    // With the right time it joins, and is refused no more.
    await agent.connect();
    await agent.send({ ...agent.hello(), at: Date.now() } as AgentMessage);
    await agent.send(agent.report());
    await agent.settled();
    expect(await listed()).toContain(agent.name);
    expect(await refusedFor(agent)).toBeUndefined();
  });

  it('leaves the roster with the report that shows it, not with a delayed one', async () => {
    const agent = await make({ pool: `clock-${crypto.randomUUID()}` });
    await agent.join();
    const signed = Date.now();
    passTime(60_000);
    for (const at of [signed, Date.now()]) await agent.send({ ...agent.report(), at } as AgentMessage);
    await agent.settled();
    expect(await listed()).toContain(agent.name);
    await agent.send({ ...agent.report(), at: Date.now() + 600_000 } as AgentMessage);
    expect(await agent.closed).toMatchObject({ code: 4403 });
    expect(await listed()).not.toContain(agent.name);
    expect(await refusedFor(agent)).toContain("the agent's clock is 600 s ahead");
  });
});

describe('C5 A21 an agent name belongs to a pool', () => {
  it('refuses and records a hello by a token of another pool', async () => {
    const agent = await make();
    await agent.join();
    passTime(2_000);
    const thief = await make({ agent: agent.name, pool: 'other-pool' });
    const before = await lastNumber();
    await thief.connect();
    await thief.send(thief.hello());
    expect(await thief.closed).toMatchObject({ code: 4403 });
    expect(await thief.waitFor(({ type }) => type === 'refusal')).toEqual({
      type: 'refusal',
      reason: 'heartbeat_invalid',
      detail: `The roster does not accept this report. Reason: the name ${agent.name} belongs to another pool.`,
    });
    const detail = `the name ${agent.name} belongs to the pool ${agent.pool}`;
    expect(await recorded(before)).toMatchObject([{ type: 'keys', action: 'refused', agent: 'other-pool', detail }]);
    await agent.send(agent.report());
    await agent.settled();
    expect(await listed()).toContain(agent.name);
  });

  it('keeps the name while the agent is away, frees it after a week', async () => {
    await runInDurableObject<Roster, void>(env.ROSTER.getByName(`zone-${crypto.randomUUID()}`), (_, state) => {
      const names = new AgentNames(state.storage.sql);
      const [pool, other] = ['aks-west', 'eks-east'].map((one) => ({ agent: 'asr-0', pool: one }));
      if (!pool || !other) throw new Error('pools');
      const at = (now: number) => ({ now, connected: false });
      expect(names.claim(pool, 'boot 1', at(0))).toEqual({ ok: true, value: undefined });
      const refusal = { reason: 'heartbeat_invalid' };
      expect(names.claim(other, 'boot 2', at(1))).toMatchObject({ ok: false, refusal });
      expect(new AgentNames(state.storage.sql).claim(pool, 'boot 3', at(2))).toEqual({ ok: true, value: 'boot 1' });
      const later = 3 + ROSTER_NAME_MS;
      expect(names.claim(other, 'boot 4', at(later))).toEqual({ ok: true, value: undefined });
      for (let n = 0; n < ROSTER_NAMES_MAX; n += 1) {
        names.claim({ agent: `flood-${n}`, pool: 'flood' }, 'boot', at(later + n));
      }
      names.claim({ agent: 'flood-last', pool: 'flood' }, 'boot', at(later + ROSTER_NAMES_MAX));
      expect(names.claim(pool, 'boot 5', at(later))).toMatchObject({ ok: false });
      expect(names.claim({ agent: 'flood-0', pool: 'aks-west' }, 'boot', at(later))).toMatchObject({ ok: true });
    });
  });

  it('prefers the pool that prefixes the agent’s name', () => {
    const may = (pool: string, owner: string | undefined) =>
      mayUseName('aks-west-0', pool, { owner, connected: false });
    expect(may('eks', 'aks-west')).toBe(false);
    expect(may('aks-west', 'eks')).toBe(true);
    expect(may('aks-west', 'aks')).toBe(true);
    expect(may('aks', 'aks-west')).toBe(false);
    expect(may('aks-we', undefined)).toBe(true);
    expect(may('aks-we', 'eks')).toBe(false);
  });

  it('leaves a connected agent its name whatever pool begins it', async () => {
    const pool = `gpu${crypto.randomUUID().slice(0, 8)}`;
    const agent = await make({ agent: `${pool}-7`, pool: 'eu' });
    await agent.join();
    passTime(2_000);
    const thief = await make({ agent: agent.name, pool });
    await thief.connect();
    await thief.send(thief.hello());
    expect(await thief.closed).toMatchObject({ code: 4403 });
    await agent.send(agent.report());
    await agent.settled();
    expect(await listed()).toContain(agent.name);
    agent.leave();
    await agent.closed;
    await thief.join();
    expect(await listed()).toContain(thief.name);
  });
});

describe('C5 A21 two processes of one name in one pool', () => {
  it('records the replacement, and lets the first back in with a newer attestation', async () => {
    const first = await make();
    await first.join();
    passTime(2_000);
    const before = await lastNumber();
    const second = await make({ agent: first.name });
    await second.join();
    expect(await first.closed).toMatchObject({ code: 1000 });
    const events = (await recorded(before)).filter(({ agent }) => agent === first.name);
    const [attested, replaced] = events;
    expect(events.map(({ action }) => action)).toEqual(['attested', 'replaced']);
    expect(replaced).toMatchObject({ attestation: attested?.attestation, detail: 'the other was connected' });

    await first.connect();
    await first.send(first.hello());
    expect(await first.waitFor(({ type }) => type === 'refusal')).toMatchObject({ reason: 'attestation_stale' });
    passTime(2_000);
    await first.attest();
    await first.join();
    expect(await second.closed).toMatchObject({ code: 1000 });
    expect(await listed()).toContain(first.name);
  });

  it('records no replacement when one process connects again', async () => {
    const agent = await make();
    await agent.join();
    const before = await lastNumber();
    await agent.join();
    expect((await recorded(before)).map(({ action }) => action)).toEqual(['attested']);
  });
});

describe('A1 the outbox of a roster', () => {
  it('goes on with the right numbers after a write that failed', async () => {
    const roster = env.ROSTER.getByName(`zone-${crypto.randomUUID()}`);
    const event = () => createEvent({ type: 'keys', agent: 'a', action: 'gone' }, 1);
    const broken = {
      get type() {
        throw new Error('disk');
      },
    } as unknown as AuditEvent;
    await runInDurableObject<Roster, void>(roster, (instance) => {
      instance.record([event()]);
      expect(() => instance.record([event(), broken])).toThrow('disk');
      instance.record([event()]);
    });
    expect((await roster.outbox(0, 10)).rows.map(({ pseq }) => pseq)).toEqual([1, 2]);
  });
});

describe('C5 A4 the roster refuses with close code 4403', () => {
  const rejects = async (agent: FakeAgent) => {
    expect(await agent.closed).toMatchObject({ code: 4403 });
    expect(await listed()).not.toContain(agent.name);
  };

  it('a first message that is no hello', async () => {
    const agent = await make();
    await agent.connect();
    await agent.send(agent.report());
    await rejects(agent);
  });

  it('a hello with a bad signature', async () => {
    const [agent, thief] = [await make(), await make()];
    await agent.connect();
    agent.sendRaw(await thief.sign(agent.hello()));
    await rejects(agent);
  });

  it('a hello with the attestation of another agent', async () => {
    const [agent, other] = [await make(), await make()];
    agent.attestation = other.attestation;
    await agent.connect();
    await agent.send(agent.hello());
    await rejects(agent);
  });

  it('a hello for a pool that the token does not name', async () => {
    const agent = await make();
    await agent.connect(await makePoolToken('another-pool', 'eu'));
    await agent.send(agent.hello());
    await rejects(agent);
  });

  it('an expired attestation', async () => {
    const agent = await make({ attestationSeconds: -120 });
    await agent.connect();
    await agent.send(agent.hello());
    expect(await agent.waitFor(({ type }) => type === 'refusal')).toMatchObject({ reason: 'attestation_invalid' });
    await rejects(agent);
  });

  it('an attestation that expires while connected', async () => {
    const agent = await make({ attestationSeconds: 300 });
    await agent.join();
    passTime(301_000);
    expect(await listed()).not.toContain(agent.name);
    await agent.send(agent.report());
    await rejects(agent);
  });

  it.each([
    [
      'a report with a bad signature',
      async (agent: FakeAgent) => agent.sendRaw(`${(await agent.sign(agent.report())).slice(0, -8)}AAAAAAAA`),
    ],
    ['a replayed report', async (agent: FakeAgent) => agent.send(agent.report({ seq: agent.seq }))],
    ['a report of another boot', async (agent: FakeAgent) => agent.send(agent.report({ boot: crypto.randomUUID() }))],
    ['a message over the bound', async (agent: FakeAgent) => agent.sendRaw('x'.repeat(HEARTBEAT_BYTES + 1))],
    ['a second hello', async (agent: FakeAgent) => agent.send(agent.hello())],
  ])('%s', async (_, misbehave) => {
    const agent = await make();
    await agent.join();
    await misbehave(agent);
    await rejects(agent);
  });

  it('a hello that was sent before, on a new connection', async () => {
    const agent = await make();
    await agent.connect();
    const hello = await agent.sign(agent.hello());
    agent.sendRaw(hello);
    await agent.waitFor(({ type }) => type === 'welcome');
    agent.leave();
    await agent.closed;
    await agent.connect();
    agent.sendRaw(hello);
    await rejects(agent);
  });

  it('messages of an earlier boot; the later one stays', async () => {
    const first = await make();
    await first.connect();
    const recorded = [await first.sign(first.hello()), await first.sign(first.report())];
    for (const text of recorded) first.sendRaw(text);
    await first.settled();
    passTime(2_000);
    const second = await make({ agent: first.name });
    await second.join();

    const thief = await make({ agent: first.name });
    await thief.connect();
    for (const text of recorded) thief.sendRaw(text);
    expect(await thief.waitFor(({ type }) => type === 'refusal')).toMatchObject({ reason: 'attestation_stale' });
    expect(await thief.closed).toMatchObject({ code: 4403 });
    await second.send(second.report());
    await second.settled();
    expect(await listed()).toContain(second.name);
  });

  it('a boot of the same second, once another came after it', async () => {
    const agent = await make();
    const hello = await agent.sign(agent.hello());
    const now = Date.now();
    const issued = decodeJwt(agent.attestation).iat as number;
    const read = (last: LastMessage | undefined) =>
      readHello(hello, {
        admission: agent,
        attest: (token) => verifyAttestation(token, makeSettings({}).attestation, now),
        lastMessageOf: () => last,
        opened: now,
        now,
      });
    const last = { boot: 'another', seq: 9, issued, earlier: ['and another'] };
    const refused = { ok: false, refusal: { reason: 'attestation_stale' } };
    expect(await read(last)).toMatchObject({ ok: true, value: { earlier: ['and another', 'another'] } });
    expect(await read({ ...last, earlier: [agent.boot] })).toMatchObject(refused);
    expect(await read({ ...last, issued: issued + 1 })).toMatchObject(refused);
    const older = { ...last, issued: issued - 1, earlier: [agent.boot] };
    expect(await read(older)).toMatchObject({ ok: true, value: { earlier: [] } });
    const full = Array.from({ length: ROSTER_BOOTS_MAX }, (_, n) => `boot ${n}`);
    expect(await read({ ...last, earlier: full })).toMatchObject(refused);
  });

  it('a self-issued attestation, when the settings say production', async () => {
    const agent = await make();
    const { attestation } = makeSettings(productionTexts());
    const now = Date.now();
    const hello = await readHello(await agent.sign(agent.hello()), {
      admission: agent,
      attest: (token) => verifyAttestation(token, attestation, now),
      lastMessageOf: () => undefined,
      opened: now,
      now,
    });
    expect(hello).toMatchObject({
      ok: false,
      refusal: { reason: 'attestation_invalid', detail: 'attestation: development issuer' },
    });
  });
});
